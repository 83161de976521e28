//! Ten thousand clients that listen to a task over `subscriptions/listen` (Tasks extension, "Task Status Notifications").

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::timeout;

use crate::drive::runtime;
use crate::http::Connection;
use crate::operation::{Client, Operation};
use crate::options::{Preload, Role};
use crate::server::Server;
use crate::table::{NOT_MEASURED, Table, median, millis, whole};

use super::{Setting, idle};

const LISTENERS: usize = 10_000;

/// Files that this process and a server need besides the connections.
const SPARE: usize = 200;

/// How many connections are opened at a time: fewer than a listener keeps waiting to be accepted.
const AT_A_TIME: usize = 64;

/// How long any one answer may take, ten thousand of them in a row.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a server is given to say that it does not grant what was asked.
const REFUSAL: Duration = Duration::from_secs(2);

pub(super) fn run(setting: &Setting) -> anyhow::Result<()> {
    println!("## Listening to one task\n");
    let wanted = setting.effort.pick(LISTENERS, 200);
    let count = wanted.min(setting.open_files.saturating_sub(SPARE));
    if count < wanted {
        println!(
            "Only {count} connections, as this system allows {} open files.\n",
            setting.open_files
        );
    }
    let server = Server::start(Role::Ours, &Preload::default(), &setting.answers)?;
    let Some(seen) = runtime()?.block_on(listen(&server, count))? else {
        println!("The server does not grant `taskIds`: not measured.\n");
        return Ok(());
    };
    let mut table = Table::new([
        "listeners",
        "resident bytes of a connection",
        "and of its listener",
        "change reached half after ms",
        "and all after ms",
    ]);
    let bytes = |bytes: Option<f64>| bytes.map_or_else(|| NOT_MEASURED.to_owned(), whole);
    table.row([
        whole(count as f64),
        bytes(seen.connection),
        bytes(seen.listener),
        millis(seen.half),
        millis(seen.all),
    ]);
    table.print();
    println!("rmcp's subscription filter has no `taskIds`.\n");
    Ok(())
}

#[derive(Debug)]
struct Seen {
    connection: Option<f64>,
    listener: Option<f64>,
    half: Duration,
    all: Duration,
}

/// `None` if the server does not grant it.
async fn listen(server: &Server, count: usize) -> anyhow::Result<Option<Seen>> {
    let mut client = Client::open(server).await?;
    client.run(&Operation::Park).await?;
    let id = client.id().to_owned();
    let request = server.requests.listen.prepare(&id);
    let poll = server.requests.get_asking.prepare(&id);
    if !granted(server, &request, &id).await? {
        return Ok(None);
    }

    let empty = server.usage();
    let opened: Vec<Connection> = stream::iter(0..count)
        .map(|_| async {
            let mut connection = Connection::open(server.address).await?;
            // Has the server set up all that belongs to a connection.
            connection.exchange(&poll).await?;
            anyhow::Ok(connection)
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await?;
    let connected = server.usage();
    let mut listening: Vec<Connection> = stream::iter(opened)
        .map(|mut connection| {
            let (request, id) = (&request, &id);
            async move {
                connection.send(request).await?;
                acknowledged(&mut connection, id).await?;
                anyhow::Ok(connection)
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await?;
    idle(Duration::from_millis(200));
    let subscribed = server.usage();

    let start = Instant::now();
    let answered = client.step(&server.requests.answer, br#""resultType":"complete""#);
    let told = listening.iter_mut().map(|connection| async move {
        connection.until(br#""status":"completed""#).await?;
        anyhow::Ok(start.elapsed())
    });
    let told = futures::future::try_join_all(told);
    let (told, ()) = timeout(PATIENCE, futures::future::try_join(told, answered))
        .await
        .context("a listener was not told of the end")??;

    let each = |from: u64, to: u64| to.saturating_sub(from) as f64 / count as f64;
    Ok(Some(Seen {
        connection: empty.zip(connected).map(|(a, b)| each(a.resident, b.resident)),
        listener: connected.zip(subscribed).map(|(a, b)| each(a.resident, b.resident)),
        half: Duration::from_secs_f64(median(told.iter().map(Duration::as_secs_f64))),
        all: told.iter().max().copied().unwrap_or_default(),
    }))
}

/// Whether the server agrees to tell of the task. One that does not says so in its acknowledgement, by leaving the task
/// out, or refuses the request.
async fn granted(server: &Server, request: &[u8], id: &str) -> anyhow::Result<bool> {
    let mut connection = Connection::open(server.address).await?;
    connection.send(request).await?;
    let heard = timeout(REFUSAL, acknowledged(&mut connection, id)).await;
    if let Ok(Ok(())) = heard {
        return Ok(true);
    }
    eprintln!("        the server says to a listener: {}", connection.rest());
    Ok(false)
}

async fn acknowledged(connection: &mut Connection, id: &str) -> anyhow::Result<()> {
    connection.until(b"notifications/subscriptions/acknowledged").await?;
    // The filter of the acknowledgement, before any notification on the task, which has the id as a member's value.
    connection.until(format!("[\"{id}\"]").as_bytes()).await
}
