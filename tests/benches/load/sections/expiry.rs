//! Tasks whose time is over: their removal costs what expires, whatever else is stored, and holds no request up.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::drive::runtime;
use crate::operation::{Client, Operation};
use crate::options::{Preload, Role};
use crate::server::{Server, expiring_id, parked_id};
use crate::table::{NOT_MEASURED, Table, micros, whole};

use super::Setting;

/// How long after they were created tasks expire, and from when the server is ready to when it is looked at again. It has
/// to be quiet by the first, and the sweep comes every second.
const FULL: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(6));
const QUICK: (Duration, Duration) = (Duration::from_millis(1000), Duration::from_millis(2500));

/// How often a client asks meanwhile.
const PACE: Duration = Duration::from_millis(2);

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    println!("## Expiry, with one client that polls every other millisecond\n");
    let (many, expiring) = setting.effort.pick((1_000_000, 100_000), (2000, 1000));
    let mut table = Table::new(["stored", "expiring", "CPU ms of the server", "longest poll µs"]);
    let (expires_in, watched) = setting.effort.pick(FULL, QUICK);
    for (parked, expiring) in [(1, 0), (1, expiring), (many, 0), (many, expiring)] {
        let preload = Preload {
            parked,
            expiring,
            expires_in,
        };
        let server = Server::start(Role::Ours, &preload, &setting.answers)?;
        let before = server.usage();
        let longest = runtime()?.block_on(watch(&server, expiring, watched))?;
        let after = server.usage();
        let cpu = before
            .zip(after)
            .map(|(before, after)| after.cpu.saturating_sub(before.cpu));
        table.row([
            whole(parked as f64),
            whole(expiring as f64),
            cpu.map_or_else(|| NOT_MEASURED.to_owned(), |cpu| whole(cpu.as_secs_f64() * 1e3)),
            micros(longest),
        ]);
    }
    table.print();
    println!("rmcp's manager sweeps in every operation; `stored` shows what that costs.\n");
    Ok(())
}

/// Polls a task that stays, until the others are gone, and returns how long the longest poll took.
async fn watch(server: &Server, expiring: u64, watched: Duration) -> anyhow::Result<Duration> {
    let mut client = Client::open(server).await?;
    let stays = parked_id(0);
    let operation = Operation::poll_parked(server, [stays.as_str()]);
    let start = Instant::now();
    if expiring > 0 {
        let there = expiring_id(expiring - 1);
        client
            .run(&Operation::poll_parked(server, [there.as_str()]))
            .await
            .context("a task expired early")?;
    }
    let mut longest = Duration::ZERO;
    while start.elapsed() < watched {
        let asked = Instant::now();
        client.run(&operation).await?;
        longest = longest.max(asked.elapsed());
        tokio::time::sleep(PACE).await;
    }
    if expiring > 0 {
        let gone = expiring_id(0);
        let answer = client.run(&Operation::poll_parked(server, [gone.as_str()])).await;
        ensure!(answer.is_err(), "an expired task is still there");
    }
    Ok(longest)
}
