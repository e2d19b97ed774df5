//! Traffic: how fast a capture is recorded and a workload is learned, and what a replay costs beside memtier_benchmark's own.

use crate::children::{Bench, Cpu, split_words};
use crate::rounds::Spread;
use anyhow::{Context, Result, bail};
use dyno_databases::spawn::{find_server, spawn};
use dyno_recording::entry::Arguments;
use dyno_recording::{Entry, RecordedProtocol, RecordingHeader, RecordingPoint, RecordingWriter};
use dyno_types::rng::{below, mix_bits};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Connections of all recordings.
pub const CONNECTIONS: u64 = 64;

/// Commands of the capture, and how many MB of it a core should record in a second.
const CAPTURED: u64 = 800_000;
const CAPTURE_GOAL: f64 = 200.0;

/// Commands that are learned from: a tenth of what should take two minutes and 1 GiB; and their keys.
const LEARNED: u64 = 18_000_000;
const LEARN_GOAL_S: f64 = 12.0;
const LEARN_GOAL_MIB: f64 = 1024.0;
const KEYS: u64 = 1_000_000;

/// Commands of a short and a long replay: what the long one takes more is that of its further commands, without any start.
const REPLAYED: (u64, u64) = (100_000, 400_000);
const REPLAY_KEYS: u64 = 10_000;

/// Command number `number`: its words.
fn command(number: u64, keys: u64) -> Vec<String> {
    let draw = mix_bits(number);
    let key = format!("user{}", below(draw, keys));
    match draw % 2 {
        0 => vec!["GET".into(), key],
        _ => vec!["SET".into(), key, format!("{draw:0100}")],
    }
}

/// Runs the rows.
pub fn rows(bench: &Bench, pairs: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    record_capture(bench, folder.path())?;
    learn(bench, folder.path())?;
    replay_lines(bench, folder.path(), pairs)
}

/// A packet of TCP in a capture of raw IP.
fn put_packet(
    file: &mut impl Write,
    at_us: u64,
    ports: (u16, u16),
    numbers: (u32, u32),
    flags: u8,
    data: &[u8],
) -> Result<()> {
    let length = 40 + data.len() as u32;
    let mut packet = Vec::with_capacity(56 + data.len());
    for word in [(at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32, length, length] {
        packet.extend(word.to_le_bytes());
    }
    packet.extend([0x45, 0]);
    packet.extend((length as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    packet.extend(ports.0.to_be_bytes());
    packet.extend(ports.1.to_be_bytes());
    packet.extend(numbers.0.to_be_bytes());
    packet.extend(numbers.1.to_be_bytes());
    packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend(data);
    Ok(file.write_all(&packet)?)
}

/// A capture of GET and SET of 100 bytes, each answered in a packet of its own; returns its length, bytes.
fn write_capture(path: &Path) -> Result<u64> {
    const SERVER: u16 = 6379;
    let mut file = BufWriter::new(File::create(path)?);
    // Microseconds, no cut, raw IP.
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.write_all(&word.to_le_bytes())?;
    }
    let mut numbers = [(1u32, 1u32); CONNECTIONS as usize];
    let value = "v".repeat(100);
    for number in 0..CAPTURED {
        let (place, at_us) = ((number % CONNECTIONS) as usize, number * 10);
        let port = 20_000 + place as u16;
        if number < CONNECTIONS {
            put_packet(&mut file, at_us, (port, SERVER), (0, 0), 0x02, b"")?;
            put_packet(&mut file, at_us, (SERVER, port), (0, 1), 0x12, b"")?;
        }
        let words = command(number, REPLAY_KEYS);
        let mut request = format!("*{}\r\n", words.len());
        for word in &words {
            let _ = write!(request, "${}\r\n{word}\r\n", word.len());
        }
        let reply = if words.len() == 2 { format!("$100\r\n{value}\r\n") } else { "+OK\r\n".into() };
        let (sent, answered) = &mut numbers[place];
        put_packet(&mut file, at_us + 1, (port, SERVER), (*sent, *answered), 0x18, request.as_bytes())?;
        *sent += request.len() as u32;
        put_packet(&mut file, at_us + 5, (SERVER, port), (*answered, *sent), 0x18, reply.as_bytes())?;
        *answered += reply.len() as u32;
    }
    file.flush()?;
    Ok(file.get_ref().metadata()?.len())
}

fn record_capture(bench: &Bench, folder: &Path) -> Result<()> {
    println!("\nrecord: a capture of {CAPTURED} GET and SET of 100 bytes, one core");
    let (capture, out) = (folder.join("traffic.pcap"), folder.join("traffic.dyno"));
    let bytes = write_capture(&capture)?;
    let mut rates = Vec::new();
    for _ in 0..5 {
        let _ = std::fs::remove_file(&out);
        let arguments = ["record", &capture.display().to_string(), "-o", &out.display().to_string()];
        let (told, cpu) = bench.timed(&bench.dyno.display().to_string(), &arguments.map(str::to_owned))?;
        if !told.contains(&CAPTURED.to_string()) && !told.contains("800,000") {
            bail!("not all commands were recorded:\n{told}");
        }
        rates.push(bytes as f64 / 1e6 / cpu.total_s());
    }
    std::fs::remove_file(&capture)?;
    println!(
        "  MB a second of CPU, of {:.0} MB  {}   goal {CAPTURE_GOAL}",
        bytes as f64 / 1e6,
        Spread::of(&rates)
    );
    Ok(())
}

fn header() -> RecordingHeader {
    RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "bench".into(),
        point: RecordingPoint::Unknown,
        begins_ns: None,
        clock_step_ns: 1_000,
        lacks: Vec::new(),
        value_limit: 1 << 16,
    }
}

/// Writes a recording of so many GET and SET of 100 bytes, with so many keys.
pub fn write_recording(path: &Path, commands: u64, keys: u64) -> Result<()> {
    let mut writer = RecordingWriter::create_file(path, &header())?;
    for number in 0..commands {
        let arguments = Arguments::from_words(command(number, keys));
        let connection = (number % CONNECTIONS) as u32;
        writer.push_entry(&Entry { at_ns: number * 10_000, connection, arguments, ..Entry::default() })?;
    }
    writer.finish()?;
    Ok(())
}

fn learn(bench: &Bench, folder: &Path) -> Result<()> {
    println!("\nlearn: {LEARNED} GET and SET of 100 bytes and {KEYS} keys, two cores");
    let (recording, out) = (folder.join("learned.dyno"), folder.join("work.yaml"));
    write_recording(&recording, LEARNED, KEYS)?;
    let begun = Instant::now();
    let cores = format!("{},{}", bench.server_core, bench.client_core);
    let mut child = Command::new("taskset")
        .args(["-c", &cores])
        .arg(&bench.dyno)
        .args(["learn", &recording.display().to_string(), "-o", &out.display().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("taskset dyno learn")?;
    // The kernel keeps the highest mark, which is looked at until the end.
    let mut peak_kib = 0;
    let status = loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let own = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak_kib.max(own.unwrap_or(0u64));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !status.success() {
        bail!("dyno learn: {status}");
    }
    let seconds = begun.elapsed().as_secs_f64();
    std::fs::remove_file(&recording)?;
    println!("  seconds                {seconds:6.2}   goal {LEARN_GOAL_S} (180 million in two minutes)");
    println!("  peak resident, MiB     {:6.1}   goal {LEARN_GOAL_MIB}", peak_kib as f64 / 1024.0);
    Ok(())
}

/// The same lines of MONITOR, by a replay and by memtier_benchmark.
fn replay_lines(bench: &Bench, folder: &Path, pairs: usize) -> Result<()> {
    println!(
        "\nlines of MONITOR, {CONNECTIONS} connections, as fast as the server answers: a replay and memtier_benchmark"
    );
    if !bench.has_memtier() {
        println!("  memtier_benchmark is not installed");
        return Ok(());
    }
    let (kind, program) = find_server(Some("redis")).context("redis-server")?;
    let server = spawn(kind, &program)?;
    let server_name = format!("127.0.0.1:{}/0", server.port);
    let uri = format!("redis://127.0.0.1:{}", server.port);
    let (few, many) = REPLAYED;
    let mut files = Vec::new();
    for count in [few, many] {
        let path = folder.join(format!("{count}.monitor"));
        let mut file = BufWriter::new(File::create(&path)?);
        for number in 0..count {
            let words: Vec<String> =
                command(number, REPLAY_KEYS).iter().map(|word| format!("\"{word}\"")).collect();
            let (at_us, port) = (1_700_000_000_000_000 + number * 10, 20_000 + number % CONNECTIONS);
            let (s, us) = (at_us / 1_000_000, at_us % 1_000_000);
            writeln!(file, "{s}.{us:06} [0 127.0.0.1:{port}] {}", words.join(" "))?;
        }
        file.flush()?;
        let recording = folder.join(format!("{count}.dyno"));
        let arguments = ["record", &path.display().to_string(), "-o", &recording.display().to_string()];
        bench.timed(&bench.dyno.display().to_string(), &arguments.map(str::to_owned))?;
        files.push((path, recording));
    }
    let replay = |file: &Path| -> Result<Cpu> {
        let line = format!(
            "replay {} {uri} --speed max --yes-write {server_name} --no-pin --wait sleep --no-out --json --quiet --no-monitor \
             --threads 1",
            file.display()
        );
        Ok(bench.timed(&bench.dyno.display().to_string(), &split_words(&line))?.1)
    };
    let memtier = |file: &Path, count: u64| -> Result<Cpu> {
        let line = format!(
            "-s 127.0.0.1 -p {} -t 1 -c {CONNECTIONS} -n {} --hide-histogram --monitor-input {} --command __monitor_line@__",
            server.port,
            count / CONNECTIONS,
            file.display()
        );
        Ok(bench.timed("memtier_benchmark", &split_words(&line))?.1)
    };
    let each = |start: Cpu, whole: Cpu| (whole.total_s() - start.total_s()) * 1e6 / (many - few) as f64;
    let (mut costs, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pairs {
        let mine = each(replay(&files[0].1)?, replay(&files[1].1)?);
        let other = each(memtier(&files[0].0, few)?, memtier(&files[1].0, many)?);
        costs.push(mine);
        peers.push(other);
        ratios.push(mine / other);
    }
    println!("  client CPU us/op: replay {}, memtier_benchmark {}", Spread::of(&costs), Spread::of(&peers));
    println!("  replay / memtier_benchmark  {}   goal 1", Spread::of(&ratios));
    Ok(())
}
