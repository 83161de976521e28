//! Reading a URL without ever showing it.

use std::fmt;

use redis::{ConnectionInfo, IntoConnectionInfo};

/// What a wrong URL is answered with.
const USAGE: &str = "write `redis://host:6379/0` (`rediss://` for TLS, `redis-cluster://host1,host2` for a cluster, \
                     `redis+unix:///path` for a socket), with `user:password@` before the host if need be, percent-encoded";

/// What a URL names.
#[derive(Clone)]
pub(super) enum Target {
    Server(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
}

impl fmt::Debug for Target {
    /// Addresses alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = match self {
            Self::Server(info) => std::slice::from_ref(&**info),
            Self::Cluster(nodes) => nodes,
        };
        f.debug_list()
            .entries(nodes.iter().map(|node| node.addr().to_string()))
            .finish()
    }
}

/// Reads a URL of one of the schemes that name Redis or Valkey.
pub(super) fn parse(url: &str) -> Result<Target, String> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or_else(|| format!("it is no URL of a server; {USAGE}"))?;
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "redis" | "rediss" | "valkey" | "valkeys" | "redis+unix" | "valkey+unix" => {
            Ok(Target::Server(Box::new(server(&scheme, rest)?)))
        }
        "redis-cluster" | "rediss-cluster" | "valkey-cluster" | "valkeys-cluster" => {
            cluster(scheme.trim_end_matches("-cluster"), rest).map(Target::Cluster)
        }
        _ => Err(format!("its scheme is none of Redis's; {USAGE}")),
    }
}

fn server(scheme: &str, rest: &str) -> Result<ConnectionInfo, String> {
    let url = redis::parse_redis_url(&format!("{scheme}://{rest}"))
        .ok_or_else(|| format!("it cannot be read as a URL; {USAGE}"))?;
    let is_socket = scheme.ends_with("+unix");
    for (name, _) in url.query_pairs() {
        let known = name == "protocol" || (is_socket && matches!(&*name, "db" | "user" | "pass"));
        if !known {
            // Not named, as a password with a `?` in it comes here too.
            return Err(format!(
                "after a `?` there may be `protocol=`, for a socket `db=`, `user=` and `pass=`, and nothing else; {USAGE}"
            ));
        }
    }
    if url.fragment().is_some() {
        return Err(format!(
            "nothing may follow a `#` (a connection with TLS that trusts everybody is not offered: put the certificate \
             that signed the server's into the file that `SSL_CERT_FILE` names); {USAGE}"
        ));
    }
    url.into_connection_info().map_err(|error| {
        // What the driver says of a URL names the kind of mistake, and quotes the value of `protocol` at most.
        format!("{}; {USAGE}", error.category())
    })
}

/// Takes the nodes apart, each with the user and the parameters of all.
fn cluster(scheme: &str, rest: &str) -> Result<Vec<ConnectionInfo>, String> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    hosts
        .split(',')
        .map(|host| server(scheme, &format!("{user}{host}{rest}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        format!("{:?}", parse(url).unwrap())
    }

    #[test]
    fn urls_of_servers_are_read() {
        for (url, wanted) in [
            ("redis://db", r#"["db:6379"]"#),
            ("REDIS://db:1/2", r#"["db:1"]"#),
            ("valkey://[::1]:7000", r#"["::1:7000"]"#),
            ("rediss://user:p%40ss@db:6380", r#"["db:6380"]"#),
            ("valkeys://:secret@db", r#"["db:6379"]"#),
            (
                "redis+unix:///run/redis.sock?db=1&pass=secret",
                r#"["/run/redis.sock"]"#,
            ),
            (
                "redis-cluster://u:p,w@a:7000,b,c:7002/?protocol=resp3",
                r#"["a:7000", "b:6379", "c:7002"]"#,
            ),
            ("rediss-cluster://a", r#"["a:6379"]"#),
        ] {
            assert_eq!(shown(url), wanted, "{url}");
        }
        let Target::Cluster(nodes) = parse("valkeys-cluster://u:p%2Cw@a,b").unwrap() else {
            panic!("a cluster");
        };
        for node in nodes {
            assert_eq!(node.redis_settings().password(), Some("p,w"));
            assert_eq!(node.redis_settings().username(), Some("u"));
        }
    }

    #[test]
    fn a_wrong_url_is_answered_with_advice_and_not_shown() {
        for url in [
            "redis:hunter2",
            "redis://",
            "redis://:hunter2@",
            "redis://:hunter2@db:port",
            "redis://:hunter2@db/zero",
            "redis://:hunter2@db?password=hunter2",
            "redis://me:7?hunter2@db",
            "redis+unix:///run/redis.sock?hunter2",
            "redis://:hunter2@db?protocol=hunter2",
            "rediss://:hunter2@db#insecure",
            "redis-cluster://:hunter2@a,,b",
            "redis://:hunter2@0.0.0.0",
            "redis+tcp://:hunter2@db",
        ] {
            let error = parse(url).unwrap_err();
            assert!(
                !error.contains("hunter2") && error.contains("redis://host"),
                "{url}: {error}"
            );
        }
    }
}
