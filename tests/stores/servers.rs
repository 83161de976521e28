//! The servers that the tests start.

use mcp_tasks_tests::servers::{DbServer, nats, postgres, redis};

/// What a killed server had is there when it is started again, on the port it had.
fn comes_back(server: Option<DbServer>) {
    let Some(mut server) = server else { return };
    let (url, port) = (server.url().to_owned(), server.port());
    let before = server.pid();
    server.kill();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "it is gone");
    server.start();
    assert_ne!(server.pid(), before);
    assert_eq!(server.url(), url);
}

#[test]
fn redis_comes_back() {
    comes_back(redis(&[]));
}

#[test]
fn nats_comes_back() {
    comes_back(nats(&[]));
}

#[test]
fn postgres_comes_back() {
    comes_back(postgres(&[]));
}
