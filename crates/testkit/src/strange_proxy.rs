//! A proxy before a server, on the loopback, that does to every fiftieth reply what it should not.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// What it does to every fiftieth reply of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strange {
    /// It sends it twice.
    Twice,
    /// It closes the connection behind it.
    Closes,
}

/// Starts one before the server at this port, until the process ends; its own port.
pub fn before(server: u16, strange: Strange) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { return };
            let (mut asks, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut asks, &mut to_server));
            std::thread::spawn(move || between(server, client, strange));
        }
    });
    port
}

/// In a closed loop without a pipeline what is read at once is one reply. The first ones are greetings.
fn between(mut server: TcpStream, mut client: TcpStream, strange: Strange) {
    let mut buffer = [0; 65_536];
    for number in 1.. {
        let Ok(read @ 1..) = server.read(&mut buffer) else { break };
        let is_strange = number % 50 == 0;
        let times = if is_strange && strange == Strange::Twice { 2 } else { 1 };
        if client.write_all(&buffer[..read].repeat(times)).is_err()
            || (is_strange && strange == Strange::Closes)
        {
            break;
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}
