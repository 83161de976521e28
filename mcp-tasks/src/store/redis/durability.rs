//! What the server is set to lose.

use std::collections::HashMap;
use std::time::Duration;

use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, RedisResult, cmd};

use super::connection::Connection;

/// Looks, once, at how the server keeps what it acknowledges, and warns where that is less than a task store promises.
/// What may not be asked, as with many hosted servers, is left out. In a cluster one node speaks for all.
pub(super) async fn look(mut connection: Connection, timeout: Duration) {
    let looking = async {
        let mut warnings = Vec::new();
        if let Some(reason) = appending(&mut connection).await {
            warnings.push(reason);
        }
        if let Some(policy) = setting(&mut connection, "maxmemory-policy", ("memory", "maxmemory_policy")).await
            && policy != "noeviction"
        {
            warnings.push(format!(
                "its `maxmemory-policy` is `{policy}`: when memory is full it removes tasks without a word; set it to \
                 `noeviction`"
            ));
        }
        warnings
    };
    let warnings = tokio::time::timeout(timeout, looking).await.unwrap_or_default();
    for warning in warnings {
        tracing::warn!("the Redis server that keeps tasks can lose them: {warning}");
    }
}

async fn appending(connection: &mut Connection) -> Option<String> {
    let append = setting(connection, "appendonly", ("persistence", "aof_enabled")).await?;
    if matches!(append.as_str(), "no" | "0") {
        return Some(
            "its `appendonly` is `no`: when it ends, what it acknowledged since its last snapshot, if it makes any, is \
             gone; set `appendonly yes`"
                .to_owned(),
        );
    }
    let flush = config(connection, "appendfsync").await.ok()??;
    (flush != "always").then(|| {
        format!(
            "its `appendfsync` is `{flush}`: when the machine it runs on fails, the writes of the last moments are gone; \
             set it to `always` if acknowledged tasks must survive that"
        )
    })
}

/// A setting from where it may be read.
async fn setting(connection: &mut Connection, name: &str, info: (&str, &str)) -> Option<String> {
    if let Ok(Some(value)) = config(connection, name).await {
        return Some(value);
    }
    let (section, field) = info;
    let text: String = ask(connection, cmd("INFO").arg(section)).await.ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .map(|value| value.trim().to_owned())
}

async fn config(connection: &mut Connection, name: &str) -> RedisResult<Option<String>> {
    let mut found: HashMap<String, String> = ask(connection, cmd("CONFIG").arg("GET").arg(name)).await?;
    Ok(found.remove(name))
}

/// A cluster connection would send these to all nodes.
async fn ask<T: redis::FromRedisValue>(connection: &mut Connection, command: &Cmd) -> RedisResult<T> {
    match connection {
        Connection::Cluster(cluster) => {
            let one = RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
            let value = cluster.route_command(command.clone(), one).await?;
            Ok(redis::from_redis_value(value)?)
        }
        other => command.query_async(other).await,
    }
}
