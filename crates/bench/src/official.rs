//! The official driver on the same operations: tasks on one thread, each with its own operation under way.

use crate::children::{Bench, Cpu};
use anyhow::Result;

/// CPU of the official driver's client; `None` where this program was built without it.
pub fn measure(bench: &Bench, port: u16, operations: u64) -> Result<Option<Cpu>> {
    if !cfg!(feature = "official") {
        return Ok(None);
    }
    let me = std::env::current_exe()?.display().to_string();
    let arguments = ["official".to_owned(), port.to_string(), operations.to_string()];
    Ok(Some(bench.timed(&me, &arguments)?.1))
}

/// `official PORT OPERATIONS`
#[cfg(feature = "official")]
pub fn run(arguments: &[String]) -> Result<()> {
    use anyhow::Context;
    use mongodb::bson::{Binary, Document, doc, spec::BinarySubtype};
    let number = |at: usize| -> Result<u64> {
        arguments.get(at).context("too few arguments")?.parse().context("a number")
    };
    let (port, operations) = (number(0)?, number(1)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let uri =
            format!("mongodb://127.0.0.1:{port}/?directConnection=true&maxPoolSize=64&retryWrites=false");
        let client = mongodb::Client::with_uri_str(uri).await?;
        let tasks: Vec<_> = (0..64u64)
            .map(|task| {
                let records = client.database("ycsb").collection::<Document>("usertable");
                tokio::spawn(async move {
                    for index in (task..operations).step_by(64) {
                        let key = format!("user{}", index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                        if index / 64 % 2 == 0 {
                            records.find_one(doc! { "_id": key }).await?;
                        } else {
                            let bytes = vec![b'x'; 100];
                            let value = Binary { subtype: BinarySubtype::Generic, bytes };
                            records
                                .update_one(doc! { "_id": key }, doc! { "$set": { "field0": value } })
                                .await?;
                        }
                    }
                    Ok::<(), mongodb::error::Error>(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
}

/// Built without it.
#[cfg(not(feature = "official"))]
pub fn run(_arguments: &[String]) -> Result<()> {
    anyhow::bail!("built without the feature official")
}
