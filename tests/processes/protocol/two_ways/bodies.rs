//! Bodies that are good, odd, and wrong in every way that came to mind.

use super::{META_CAPABILITIES, META_VERSION, Pair, Raw, meta};

/// A good request for each method that is answered in front, and for one that is not.
fn good() -> Vec<Raw> {
    vec![
        Raw::good("tasks/get", "@completed@", r#""taskId":"@completed@""#),
        Raw::good(
            "tasks/update",
            "@completed@",
            r#""taskId":"@completed@","inputResponses":{"go":{"action":"decline"}}"#,
        ),
        Raw::good("tasks/cancel", "@completed@", r#""taskId":"@completed@""#),
        Raw::good(
            "tools/call",
            "plain",
            r#""name":"plain","arguments":{"text":"x","times":1}"#,
        ),
        Raw::good(
            "subscriptions/listen",
            "",
            r#""notifications":{"toolsListChanged":true}"#,
        ),
        Raw::good("tools/list", "", r#""cursor":null"#),
    ]
}

const DEEP: usize = 120;

fn deep(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// JSON values of every kind, some of which cannot be decoded.
fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e2",
        "1e999",
        "-0",
        "01",
        "18446744073709551615",
        "18446744073709551616",
        r#""""#,
        r#""x""#,
        r#""\u0000""#,
        r#""\ud83d\ude00""#,
        r#""\ud800""#,
        r#""\udc00x""#,
        r#""\x""#,
        "\"\u{7f}\u{e9}\u{1F600}\"",
        "\"\t\"",
        "[]",
        "{}",
        r#"{"a":1,"a":2}"#,
        r#"{"a":{"b":[null,{"\ud800":1}]}}"#,
        "[1,]",
        "nul",
        "",
    ]
    .map(str::to_owned)
    .into();
    values.extend((DEEP..DEEP + 10).map(deep));
    values
}

/// JSON-RPC, "Request object": id, version, method and what else stands in a message.
#[tokio::test]
async fn messages_of_every_shape() {
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    for good in good() {
        for id in [
            "0",
            "-1",
            "\"x\"",
            "\"1\"",
            "\"\"",
            r#""\u0041\"\\""#,
            "1.0",
            "1.5",
            "1e2",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "18446744073709551616",
            "9007199254740993",
            "null",
            "true",
            "[]",
            "{}",
            "\"\\ud800\"",
        ] {
            requests.push(good.with(r#""id":1"#, &format!(r#""id":{id}"#)));
        }
        for (from, to) in [
            (r#""id":1,"#, ""),
            (r#""id":1,"#, r#""id":1,"id":2,"#),
            (r#""id":1,"#, r#""id":1,"id":1,"#),
            (r#""id":1,"#, r#""\u0069d":1,"#),
            (r#""jsonrpc":"2.0""#, r#""jsonrpc":"1.0""#),
            (r#""jsonrpc":"2.0""#, r#""jsonrpc":2.0"#),
            (r#""jsonrpc":"2.0""#, r#""jsonrpc":"\u0032.0""#),
            (r#""jsonrpc":"2.0","#, ""),
            (r#""jsonrpc":"2.0","#, r#""jsonrpc":"2.0","jsonrpc":"2.0","#),
            (r#""method""#, r#""Method""#),
            (r#""method":""#, r#""method":"x"#),
            (r#""method":""#, r#""method":"\u0078"#),
            (r#""method""#, r#""method":"tools/list","method""#),
            (r#""params""#, r#""Params""#),
            (r#""params":"#, r#""params":{},"params":"#),
            (r#""params":"#, r#""result":{},"params":"#),
            (r#""params":"#, r#""error":{"code":1,"message":"x"},"params":"#),
            (r#""params":"#, r#""unknown":{},"params":"#),
            (r#""params":"#, r#""unknown":"\ud800","params":"#),
            (r#""params":"#, "\"unknown\":1e999,\"params\":"),
            ("{", " \r\n\t{"),
            ("{", "\u{feff}{"),
            ("{", "[{"),
            ("{", "//\n{"),
            (r#"}}"#, r#"} } "#),
        ] {
            requests.push(good.with(from, to));
        }
        let text = String::from_utf8(good.body.clone()).unwrap();
        let replaced = |what: &str, body: Vec<u8>| Raw {
            what: format!("{}: {what}", good.what),
            headers: good.headers.clone(),
            body,
        };
        let params = text.find(r#""params":"#).unwrap();
        for value in values() {
            requests.push(replaced(
                &format!("params are {value:.60}"),
                format!(r#"{}"params":{value}}}"#, &text[..params]).into_bytes(),
            ));
        }
        for tail in ["", "}", "]", " x", "\0", "{}", "\n\n"] {
            requests.push(replaced("a tail", format!("{text}{tail}").into_bytes()));
        }
        for cut in [0, 1, 10, text.len() - 1] {
            requests.push(replaced("cut", text.as_bytes()[..cut].to_vec()));
        }
        for at in (0..text.len()).step_by(23) {
            let mut latin = text.clone().into_bytes();
            latin[at] = 0xE9;
            requests.push(replaced("not UTF-8", latin));
        }
        // What derives serde's traits takes a struct as a list of its members.
        let as_list = match good.what.as_str() {
            "tasks/get: good" | "tasks/cancel: good" => format!(r#"[{},"@completed@"]"#, meta()),
            "tasks/update: good" => format!(r#"[{},"@completed@",{{}}]"#, meta()),
            "tools/call: good" => format!(r#"[{},"plain",{{"text":"x","times":1}},null,null]"#, meta()),
            _ => format!(r#"[{},{{"toolsListChanged":true,"taskIds":["@completed@"]}}]"#, meta()),
        };
        let method = good.what.split(':').next().unwrap();
        let listed = format!(r#"{}"params":{as_list}}}"#, &text[..params]);
        requests.push(replaced("params as a list", listed.into_bytes()));
        let listed = format!(r#"["2.0",1,"{method}",{}]"#, &text[params + 9..text.len() - 1]);
        requests.push(replaced("members as a list", listed.into_bytes()));
        requests.push(replaced("a batch", format!("[{text}]").into_bytes()));
        requests.push(replaced(
            "a response",
            br#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_vec(),
        ));
        requests.push(replaced(
            "a notification",
            br#"{"jsonrpc":"2.0","method":"x"}"#.to_vec(),
        ));
        requests.push(replaced(
            "UTF-16",
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ));
    }
    assert!(requests.len() > 400, "{}", requests.len());
    pair.compare(requests).await;
}

/// 2026-07-28, "Request Metadata", and Tasks, "Capability Negotiation": what a request says about itself.
#[tokio::test]
async fn envelopes_of_every_shape() {
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    for good in good() {
        let whole = format!(r#""_meta":{}"#, meta());
        for value in values() {
            requests.push(good.with(&whole, &format!(r#""_meta":{value}"#)));
            requests.push(good.with(r#""_meta":{"#, &format!(r#""_meta":{{"unknown":{value},"#)));
            requests.push(good.with(r#""_meta":{"#, &format!(r#""_meta":{{"progressToken":{value},"#)));
            requests.push(good.with(r#""2026-07-28""#, &value));
            requests.push(good.with(
                r#""io.modelcontextprotocol/tasks":{}"#,
                &format!(r#""io.modelcontextprotocol/tasks":{value}"#),
            ));
            requests.push(good.with(
                META_CAPABILITIES,
                &format!(r#""io.modelcontextprotocol/clientCapabilities":{value}"#),
            ));
            requests.push(good.with(r#""elicitation":{}"#, &format!(r#""elicitation":{value}"#)));
        }
        for (from, to) in [
            (&*whole, r#""x":1"#),
            (&whole, &format!("{whole},{whole}")),
            (META_VERSION, r#""x":1"#),
            (META_VERSION, &format!("{META_VERSION},{META_VERSION}")),
            (
                META_VERSION,
                r#""io.modelcontextprotocol/protocolVersion":"2025-11-25""#,
            ),
            (
                META_VERSION,
                r#""io.modelcontextprotocol/protocolVersion":"2099-01-01""#,
            ),
            (
                META_VERSION,
                r#""io.modelcontextprotocol/protocolVersion":"\u0032026-07-28""#,
            ),
            (
                META_VERSION,
                r#""io.modelcontextprotocol\/protocolVersion":"2026-07-28""#,
            ),
            (META_CAPABILITIES, r#""x":1"#),
            (META_CAPABILITIES, &format!("{META_CAPABILITIES},{META_CAPABILITIES}")),
            (
                META_CAPABILITIES,
                r#""io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/tasks":{}"#,
            ),
            (r#""extensions""#, r#""extensions":{},"extensions""#),
            (r#""extensions""#, r#""tasks":{},"extensions""#),
            (
                r#""io.modelcontextprotocol/tasks":{}"#,
                r#""io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/tasks":true"#,
            ),
            (
                r#""io.modelcontextprotocol/tasks":{}"#,
                r#""io.modelcontextprotocol/tasks":{"cancel":{}},"other":{}"#,
            ),
            (
                r#""_meta":{"#,
                r#""_meta":{"io.modelcontextprotocol/logLevel":"debug","#,
            ),
            (r#""_meta":{"#, r#""_meta":{"io.modelcontextprotocol/logLevel":"loud","#),
            (
                r#""_meta":{"#,
                r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"#,
            ),
            (r#""_meta":{"#, r#""_meta":{"io.modelcontextprotocol/clientInfo":7,"#),
            (
                r#""_meta":{"#,
                r#""_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","#,
            ),
            (r#""_meta":{"#, r#""_meta":{"traceparent":"a","traceparent":"b","#),
            (r#""_meta":{"#, r#""_meta" : { "#),
        ] {
            requests.push(good.with(from, to));
        }
    }
    assert!(requests.len() > 1000, "{}", requests.len());
    pair.compare(requests).await;
}

/// The params of each method.
#[tokio::test]
async fn params_of_every_shape() {
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    for good in good() {
        for value in values() {
            requests.push(good.with(r#""_meta""#, &format!(r#""unknown":{value},"_meta""#)));
            for member in [
                r#""taskId":"@completed@""#,
                r#""inputResponses":{"go":{"action":"decline"}}"#,
                r#"{"go":{"action":"decline"}}"#,
                r#"{"action":"decline"}"#,
                r#""name":"plain""#,
                r#""arguments":{"text":"x","times":1}"#,
                r#""text":"x""#,
                r#""times":1"#,
                r#""notifications":{"toolsListChanged":true}"#,
                r#""cursor":null"#,
            ] {
                let body = String::from_utf8(good.body.clone()).unwrap();
                if !body.contains(member) {
                    continue;
                }
                let key = member.split_once(':').unwrap().0;
                let to = if member.starts_with('{') {
                    value.clone()
                } else {
                    format!("{key}:{value}")
                };
                requests.push(good.with(member, &to));
                requests.push(good.with(member, &format!("{member},{}", to.trim_start_matches('{'))));
            }
            if good.what.starts_with("tools/call") {
                for key in ["task", "requestState", "inputResponses"] {
                    requests.push(good.with(r#""_meta""#, &format!(r#""{key}":{value},"_meta""#)));
                }
            }
        }
    }
    assert!(requests.len() > 500, "{}", requests.len());
    pair.compare(requests).await;
}

/// 2026-07-28, "Sending Messages": bodies around the limit of 4 MiB.
#[tokio::test]
async fn bodies_around_the_limit() {
    const LIMIT: usize = 4 * 1024 * 1024;
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    // The names of tasks in the body are longer than the tasks' own, or shorter.
    let whole = |mut good: Raw| {
        good.body = String::from_utf8(good.body)
            .unwrap()
            .replace("@completed@", "no-such-task")
            .into_bytes();
        good.with_header("mcp-name", &[b"no-such-task"])
    };
    let call = good().remove(3);
    for good in [whole(good().remove(0)), call] {
        for length in [LIMIT, LIMIT + 1] {
            let mut body = good.body.clone();
            body.resize(length, b' ');
            requests.push(Raw {
                what: format!("{}: {length} bytes", good.what),
                headers: good.headers.clone(),
                body,
            });
        }
    }
    pair.compare(requests).await;
}
