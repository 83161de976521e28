//! One request, two ways: in front of rmcp and behind it. The same bytes come back, whatever is sent.
//!
//! Each request of the tables goes to two servers, of which one leaves everything to rmcp. Status, headers and body are
//! compared, with ids and instants made equal.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::protocol::harness::{Request, V2026, Wire, declared, undeclared};

mod bodies;
mod headers;

/// A request as it goes over the wire.
#[derive(Debug, Clone)]
struct Raw {
    what: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

const META_VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
const META_CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A good `_meta`.
fn meta() -> String {
    format!("{{{META_VERSION},{META_CAPABILITIES}}}")
}

impl Raw {
    fn new(what: impl Into<String>, method: &'static str, name: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut headers: Vec<(&'static str, Vec<u8>)> = vec![
            ("accept", b"application/json, text/event-stream".to_vec()),
            ("content-type", b"application/json".to_vec()),
            ("mcp-protocol-version", V2026.into()),
            ("mcp-method", method.into()),
        ];
        if !name.is_empty() {
            headers.push(("mcp-name", name.into()));
        }
        Self {
            what: format!("{method}: {}", what.into()),
            headers,
            body: body.into(),
        }
    }

    /// A good request of this method, with these params besides `_meta`.
    fn good(method: &'static str, name: &str, params: &str) -> Self {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{}}}}}"#,
            meta()
        );
        Self::new("good", method, name, body)
    }

    /// The same with some text in its body replaced.
    #[track_caller]
    fn with(&self, from: &str, to: &str) -> Self {
        let body = String::from_utf8(self.body.clone()).unwrap();
        assert!(body.contains(from), "{from} is not in {body}");
        let shown: String = to.chars().take(80).collect();
        Self {
            what: format!("{}, {from} is {shown}", self.what),
            headers: self.headers.clone(),
            body: body.replacen(from, to, 1).into_bytes(),
        }
    }

    /// The same with a header of just these values.
    fn with_header(&self, name: &'static str, values: &[&[u8]]) -> Self {
        let mut headers = self.headers.clone();
        headers.retain(|(present, _)| *present != name);
        headers.extend(values.iter().map(|value| (name, value.to_vec())));
        let values: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value)).collect();
        Self {
            what: format!("{}, {name} is {values:?}", self.what),
            headers,
            body: self.body.clone(),
        }
    }
}

/// Two servers in the same state.
struct Pair {
    front: Wire,
    behind: Wire,
    /// Names that stand for what each of the two has: `@name@` in a request.
    names: Vec<(&'static str, [String; 2])>,
}

impl Pair {
    async fn start(env: &[(&str, &str)]) -> Self {
        let with = |front| [&[("MCP_TASKS_HTTP_FRONT", front), ("FIXTURE_LOG", "error")], env].concat();
        Self {
            front: Wire::http_with(&with("true")).await,
            behind: Wire::http_with(&with("false")).await,
            names: Vec::new(),
        }
    }

    fn both(&self) -> [&Wire; 2] {
        [&self.front, &self.behind]
    }

    /// A task on both, under a name.
    async fn create(&mut self, name: &'static str, tool: &str, arguments: Value, status: &str, user: Option<&Value>) {
        let mut request = Request::call(tool, arguments);
        if let Some(user) = user {
            request = request.user(user);
        }
        let mut ids = Vec::new();
        for wire in self.both() {
            let id = wire.create_by(request.clone()).await;
            if user.is_none() {
                wire.reaches(&id, status).await;
            }
            ids.push(id);
        }
        self.names.push((name, ids.try_into().unwrap()));
    }

    /// A task of every kind.
    async fn fill(&mut self) {
        let alice = json!({"iss": "https://id.example", "sub": "alice"});
        let call = json!({"text": "a\0b\u{1F600}\"\\\n", "times": 2});
        self.create("expired", "configured", json!({}), "completed", None).await;
        for wire in self.both() {
            wire.advance(700_000).await;
        }
        self.create("alices", "optional", call.clone(), "completed", Some(&alice))
            .await;
        self.create("completed", "optional", call, "completed", None).await;
        self.create("unlimited", "unlimited", json!({}), "completed", None)
            .await;
        self.create("working", "wait", json!({"gate": "shut"}), "working", None)
            .await;
        self.create("asking", "ask", json!({}), "input_required", None).await;
        self.create("asking_two", "ask_two", json!({}), "input_required", None)
            .await;
        self.create("tool_error", "fail", json!({}), "completed", None).await;
        self.create("failed", "fail_protocol", json!({}), "failed", None).await;
        self.create("panicked", "explode", json!({"way": "macro"}), "failed", None)
            .await;
        self.create("reporting", "report_and_end", json!({"gate": "shut"}), "working", None)
            .await;
        let mut ids = Vec::new();
        for wire in self.both() {
            let id = wire.create("wait", json!({"gate": "shut"})).await;
            wire.ask(&Request::cancel(&id)).await.is_ack();
            ids.push(id);
        }
        self.names.push(("cancelled", ids.try_into().unwrap()));
    }

    /// The answer of one of the two, as text.
    async fn ask(&self, which: usize, raw: &Raw) -> String {
        let put = |bytes: &[u8]| -> Vec<u8> {
            let mut bytes = bytes.to_vec();
            for (name, ids) in &self.names {
                let place = format!("@{name}@");
                let upper = format!("@{}@", name.to_uppercase());
                for (place, id) in [(place, ids[which].clone()), (upper, ids[which].to_uppercase())] {
                    while let Some(at) = find(&bytes, place.as_bytes()) {
                        bytes.splice(at..at + place.len(), id.bytes());
                    }
                }
            }
            bytes
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &raw.headers {
            let value = HeaderValue::from_bytes(&put(value)).unwrap();
            headers.append(HeaderName::from_static(name), value);
        }
        let (reply, headers) = self.both()[which].post(headers, put(&raw.body)).await;
        let mut seen: Vec<_> = headers
            .iter()
            .filter(|(name, _)| !["date", "content-length", "mcp-session-id"].contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value:?}"))
            .collect();
        seen.sort();
        let notified: Vec<_> = reply
            .notifications
            .iter()
            .map(|one| self.normal(which, &one.to_string()))
            .collect();
        format!(
            "{:?} {seen:?}\n{notified:?}\n{}",
            reply.status,
            self.normal(which, &reply.text)
        )
    }

    /// The text with what differs from server to server made equal.
    fn normal(&self, which: usize, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, ids) in &self.names {
            text = text.replace(&ids[which], name);
            text = text.replace(&ids[which].to_uppercase(), &name.to_uppercase());
        }
        normal(&text)
    }

    /// Asks both and returns how they differ.
    async fn differ(&self, raw: &Raw) -> Option<String> {
        let (front, behind) = tokio::join!(self.ask(0, raw), self.ask(1, raw));
        (front != behind).then(|| format!("{}\n  in front: {front}\n  behind: {behind}", raw.what))
    }

    /// Asks both each of these, in turn.
    async fn compare(&self, requests: Vec<Raw>) {
        let mut differences = Vec::new();
        for raw in &requests {
            differences.extend(self.differ(raw).await);
        }
        println!("{} requests", requests.len());
        assert!(
            differences.is_empty(),
            "{} of {} differ:\n{}",
            differences.len(),
            requests.len(),
            differences.join("\n")
        );
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// The same for what is new: ids of tasks, instants, sealed states.
fn normal(text: &str) -> String {
    let is_id = |part: &str| part.len() == 32 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let is_instant = |part: &str| part.len() == 24 && part.ends_with('Z') && part.as_bytes()[10] == b'T';
    let is_state = |part: &str| part.len() > 80 && !part.contains(' ');
    let parts = text.split('"').map(|part| match part {
        part if is_id(part) => "ID",
        part if is_instant(part) => "INSTANT",
        part if is_state(part) => "STATE",
        part => part,
    });
    parts.collect::<Vec<_>>().join("\"")
}

const TASKS: [&str; 14] = [
    "@expired@",
    "@alices@",
    "@completed@",
    "@COMPLETED@",
    "@unlimited@",
    "@working@",
    "@asking@",
    "@asking_two@",
    "@tool_error@",
    "@failed@",
    "@panicked@",
    "@reporting@",
    "@cancelled@",
    "never-existed",
];

/// Tasks, "Task Polling": every state, of one's own and of others, with and without the extension.
#[tokio::test]
async fn every_task_looks_the_same() {
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    for task in TASKS {
        let get = Raw::good("tasks/get", task, &format!(r#""taskId":"{task}""#));
        let alice = r#"{"iss":"https://id.example","sub":"alice"}"#;
        requests.push(get.with_header("x-test-user", &[alice.as_bytes()]));
        requests.push(get.with_header("x-test-user", &[br#"{"sub":"alice"}"#]));
        requests.push(get.with(r#""io.modelcontextprotocol/tasks":{}"#, ""));
        requests.push(get);
    }
    pair.compare(requests).await;
}

/// Tasks, "Task Update Requests" and "Task Cancellation": what is taken, what is ignored, and what is left afterwards.
#[tokio::test]
async fn answers_and_cancellations_come_to_the_same() {
    let mut pair = Pair::start(&[]).await;
    pair.fill().await;
    let answers = [
        r#"{}"#,
        r#"{"zzz":{}}"#,
        r#"{"a":7,"go":7}"#,
        r#"{"a":{"action":"explode"}}"#,
        r#"{"a":{"action":"accept","content":{}},"go":{"action":"accept","content":{"confirm":"yes"}}}"#,
        r#"{"go~2":{"action":"accept","content":{"confirm":1.5}}}"#,
        r#"{"a~2":{"action":"decline","content":[1]}}"#,
        r#"{"b":{"action":"cancel","content":null}}"#,
        r#"{"go~3":{"action":"accept","content":{"confirm":true,"more":1e3}}}"#,
    ];
    for answer in answers {
        for task in TASKS {
            let params = format!(r#""taskId":"{task}","inputResponses":{answer}"#);
            let update = Raw::good("tasks/update", task, &params);
            let get = Raw::good("tasks/get", task, &format!(r#""taskId":"{task}""#));
            pair.compare(vec![update.with(r#""io.modelcontextprotocol/tasks":{}"#, "")])
                .await;
            pair.compare(vec![update]).await;
            // Both are given the time to go on.
            for wire in pair.both() {
                let which = usize::from(std::ptr::eq(wire, &raw const pair.behind));
                for (name, ids) in &pair.names {
                    if task == format!("@{name}@") && name.starts_with("asking") {
                        wire.settled(&ids[which]).await;
                    }
                }
            }
            pair.compare(vec![get]).await;
        }
    }
    for task in TASKS {
        let cancel = Raw::good("tasks/cancel", task, &format!(r#""taskId":"{task}""#));
        let get = Raw::good("tasks/get", task, &format!(r#""taskId":"{task}""#));
        let undeclared = cancel.with(r#""io.modelcontextprotocol/tasks":{}"#, "");
        pair.compare(vec![undeclared, cancel.clone(), get.clone(), cancel, get])
            .await;
    }
}

/// "tools/call" of every tool there is, with good arguments, with none, and with others, as a task and as a call.
#[tokio::test]
async fn every_call_comes_to_the_same() {
    let pair = Pair::start(&[]).await;
    for wire in pair.both() {
        wire.open("g").await;
        wire.open("h").await;
    }
    let listed = pair.front.ask(&Request::new("tools/list", json!({}))).await;
    let tools: Vec<String> = listed.result()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        // These take their time, or say what they saw.
        .filter(|tool| {
            ![
                "block",
                "sleep",
                "stubborn",
                "observe",
                "measure_and_wait",
                "measure_anywhere",
                "wait_anywhere",
                "ask_anywhere",
                "nap",
                "explode_when_dropped",
                "advance",
                "fickle",
            ]
            .contains(&tool.as_str())
        })
        .collect();
    assert!(tools.len() > 15, "{tools:?}");
    let arguments = [
        "{}",
        r#"{"text":"x","times":2,"way":"macro","gate":"g","steps":3,"path":"/"}"#,
        r#"{"text":"","times":256,"way":1,"gate":null,"steps":-1,"path":{}}"#,
        r#"{"text":"x","times":2.0,"gate":"g","steps":3.0,"path":"/"}"#,
        r#"{"text":"x","text":"y","times":1,"gate":"g","gate":"h","path":"/"}"#,
        r#"{"text":"\u0041\ud83d\ude00","times":1,"unknown":[1,{"a":18446744073709551616}]}"#,
        "null",
        "[]",
        "\"\"",
        "1",
    ];
    for tool in ["guarded_plain", "guarded_optional", "guarded_required", "nobody"]
        .into_iter()
        .map(str::to_owned)
        .chain(tools)
    {
        let mut requests = Vec::new();
        for arguments in arguments {
            let call = Raw::good(
                "tools/call",
                &tool,
                &format!(r#""name":"{tool}","arguments":{arguments}"#),
            );
            let plain = call.with(r#""io.modelcontextprotocol/tasks":{}"#, "");
            requests.push(plain.with(r#""elicitation":{}"#, r#""sampling":{}"#));
            requests.push(plain.with(r#""_meta":{"#, r#""_meta":{"progressToken":"t","#));
            requests.push(plain);
            requests.push(call.with(r#""_meta":{"#, r#""_meta":{"progressToken":7,"#));
            let member = br#"{"sub":"m","claims":{"member":true}}"#;
            requests.push(call.with_header("x-test-user", &[member]));
            requests.push(call);
        }
        pair.compare(requests).await;
    }
}

/// Rounds of a call that asks (2026-07-28, "Multi Round-Trip Requests"), and states that are not good.
#[tokio::test]
async fn rounds_come_to_the_same() {
    let mut pair = Pair::start(&[]).await;
    let mut states = Vec::new();
    for wire in pair.both() {
        let reply = wire.ask(&Request::call("ask", json!({})).undeclared()).await;
        states.push(reply.result()["requestState"].as_str().unwrap().to_owned());
    }
    pair.names.push(("state", states.try_into().unwrap()));
    let call = |rest: &str, capabilities: &Value| {
        let mut call = Raw::good("tools/call", "ask", &format!(r#""name":"ask","arguments":{{}}{rest}"#));
        let body = String::from_utf8(call.body).unwrap();
        call.body = body
            .replace(&declared().to_string(), &capabilities.to_string())
            .into_bytes();
        call.what = rest.to_owned();
        call
    };
    let mut requests = Vec::new();
    for capabilities in [undeclared(), declared()] {
        for rest in [
            "",
            r#","requestState":null"#,
            r#","requestState":"""#,
            r#","requestState":7"#,
            r#","requestState":"@state@x""#,
            r#","requestState":"@state@""#,
            r#","requestState":"@state@","inputResponses":{}"#,
            r#","requestState":"@state@","inputResponses":{"go":{"action":"accept","content":{"confirm":"no"}}}"#,
            r#","requestState":"@state@","inputResponses":{"go":{"action":"accept","content":{"confirm":false}}}"#,
            r#","requestState":"@state@","inputResponses":[]"#,
            r#","requestState":"@state@","inputResponses":null"#,
            r#","inputResponses":{"go":{"action":"decline"}}"#,
            r#","task":{"ttl":60000}"#,
        ] {
            requests.push(call(rest, &capabilities));
        }
    }
    pair.compare(requests).await;
}

/// With `mcp.tasks.http.require-name = false` an absent `Mcp-Name` is filled in both ways, and a wrong one refused.
#[tokio::test]
async fn an_absent_name_is_filled_in_both_ways() {
    let mut pair = Pair::start(&[("MCP_TASKS_HTTP_REQUIRE_NAME", "false")]).await;
    pair.fill().await;
    let mut requests = Vec::new();
    for (method, rest) in [
        ("tasks/get", ""),
        ("tasks/update", r#","inputResponses":{}"#),
        ("tasks/cancel", ""),
    ] {
        for task in TASKS {
            let good = Raw::good(method, task, &format!(r#""taskId":"{task}"{rest}"#));
            requests.push(good.with_header("mcp-name", &[]));
            requests.push(good.with_header("mcp-name", &[b"other"]));
            requests.push(good.with_header("mcp-name", &[b""]));
            requests.push(good.with_header("mcp-name", &[]).with(r#""taskId""#, r#""taskID""#));
        }
    }
    let call = Raw::good(
        "tools/call",
        "plain",
        r#""name":"plain","arguments":{"text":"x","times":1}"#,
    );
    requests.push(call.with_header("mcp-name", &[]));
    pair.compare(requests).await;
}

/// What is plainly in order is answered in front: rmcp makes no service for it, which it would say in the log.
#[tokio::test]
async fn what_is_in_order_is_answered_in_front() {
    let wire = Wire::http().await;
    let id = wire.create("ask", json!({})).await;
    wire.reaches(&id, "input_required").await;
    let decline = json!({"go": {"action": "decline"}});
    wire.ask(&Request::update(&id, decline).meta("progressToken", json!(0)))
        .await
        .is_ack();
    wire.reaches(&id, "completed").await;
    wire.ask(&Request::cancel(&id)).await.is_ack();
    let plain = Request::call("plain", json!({"text": "x", "times": 2}));
    assert_eq!(wire.ask(&plain.clone().undeclared()).await.words(), "xx");
    assert_eq!(
        wire.fixture.log().matches("serve_inner").count(),
        0,
        "{}",
        wire.fixture.log()
    );
    wire.ask(&plain.meta("progressToken", json!("t"))).await;
    wire.fixture.logged("serve_inner").await;
}
