//! Without a terminal: answers from a file, by hand, over standard streams, and the token.

use serde_json::{Value, json};

use crate::cli::exits::scripted;
use crate::cli::harness::{Fixture, Reply, User, created, done, stdio_server, task, until, within, working};

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_with_what_they_take() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let ran = user.run(&["tools", server.url()]).await;
    assert_eq!(ran.code, 0);
    assert!(
        ran.out
            .contains("plain – Never a task.\n    text: text\n    times: a whole number\n"),
        "{}",
        ran.out
    );
    let document = user.run(&["tools", server.url(), "-o", "json"]).await.document();
    assert_eq!(document["server"], "fixture");
    assert!(
        document["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "survey")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_answers_by_key_or_by_field() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let call = async |tool: &str, answers: &Value| {
        let file = user.file("answers.json", &answers.to_string());
        user.run(&["call", server.url(), tool, "--answers", file.to_str().unwrap()])
            .await
    };
    for (answers, result) in [
        (json!({"go": {"confirm": true}}), "yes\n"),
        (json!({"confirm": false, "other": 1}), "no\n"),
        (json!({"go": {"action": "decline"}}), "declined\n"),
        (json!({"go": {"action": "cancel"}}), "cancelled\n"),
    ] {
        let ran = call("ask", &answers).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, result), "{answers}: {ran:?}");
    }
    assert_eq!(call("visit", &json!({"page": true})).await.out, "visited\n");
    assert_eq!(call("ask_twice", &json!({"confirm": true})).await.out, "yes yes\n");
    let survey = json!({"title": "t", "pages": 1, "quality": "low", "channels": [], "publish": false});
    assert!(call("survey", &survey).await.out.contains(r#""title":"t""#));

    let wrong = call("ask", &json!({"go": {"confirm": "perhaps"}})).await;
    assert_eq!(wrong.code, 5);
    assert!(
        wrong.err.contains("confirm: \"perhaps\" is not of type \"boolean\""),
        "{}",
        wrong.err
    );
    let none = call("ask", &json!({"stop": true})).await;
    assert_eq!(none.code, 5);
    assert!(
        none.err.contains("question go: Go on?") && none.err.contains("confirm: true or false"),
        "{}",
        none.err
    );

    let misspelt = call("ask", &json!({"confrim": true})).await;
    assert_eq!(misspelt.code, 5);
    assert!(
        misspelt
            .err
            .contains("answers.json has nothing for confirm, nor for the question \"go\". Not used so far: confrim"),
        "{}",
        misspelt.err
    );
    assert!(!misspelt.err.contains("--answers FILE"), "{}", misspelt.err);

    let arguments = ["call", server.url(), "ask", "--answers", "-"];
    let stdin = user.run_with_input(&arguments, r#"{"confirm": true}"#).await;
    assert_eq!(stdin.out, "yes\n");
}

/// What a task said of itself before its question is no progress after the answer.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_a_question_is_not_said_again_after_its_answer() {
    let answered = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let script = scripted(move |asked| {
        let looks = || answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let half = json!({"statusMessage": "1/2: half of it"});
        match asked.method.as_str() {
            "tasks/update" => {
                looks();
                Reply::Result(json!({"resultType": "complete"}))
            }
            "tasks/get" if answered.load(std::sync::atomic::Ordering::SeqCst) == 0 => {
                let mut asks = half;
                asks["inputRequests"] = json!({"go": {"method": "elicitation/create", "params": {
                    "message": "Go on?",
                    "requestedSchema": {"type": "object", "properties": {"confirm": {"type": "boolean"}}},
                }}});
                Reply::Result(task("input_required", asks))
            }
            "tasks/get" => Reply::Result(match looks() {
                1 => task("working", half),
                2 => task("working", json!({"statusMessage": "2/2: all of it"})),
                _ => done(),
            }),
            _ => Reply::Error(-32601, "unknown method"),
        }
    });
    let url = script.listen().await;
    let user = User::new();
    let arguments = ["resume", "t1", "--server", &url, "--answers", "-"];
    let ran = user.run_with_input(&arguments, r#"{"confirm": true}"#).await;
    assert_eq!(ran.code, 0);
    let shown: Vec<_> = ran.err.lines().collect();
    assert_eq!(
        shown,
        [
            "looking at the task",
            "waiting for an answer",
            "working",
            "2/2 all of it"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_answered_by_hand_and_resumed() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let detached = user.run(&["call", server.url(), "ask_two", "--detach"]).await;
    assert_eq!(detached.code, 0);
    let id = detached.out.trim();
    let answer = async |more: &[&str]| user.run(&[&["answer", id], more].concat()).await;

    until("it asks", async || {
        user.run(&["get", id]).await.out.contains("question b").then_some(())
    })
    .await;
    let which = answer(&["-a", "confirm=true"]).await;
    assert_eq!(which.code, 2);
    assert!(
        which.err.contains("question a: A?") && which.err.contains("question b: B?"),
        "{}",
        which.err
    );
    let wrong = answer(&["--key", "a", "-a", "confirm=perhaps"]).await;
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("confirm: true or false is expected"),
        "{}",
        wrong.err
    );
    assert_eq!(answer(&["--key", "c", "--decline"]).await.code, 2);
    assert_eq!(answer(&["--key", "a"]).await.code, 5);
    assert_eq!(answer(&["--key", "a", "-a", "confirm=yes"]).await.code, 0);
    assert_eq!(answer(&["--key", "b", "--decline"]).await.code, 0);
    let resumed = user.run(&["resume", id]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "yes declined\n"));
    // It is kept no longer, and is there all the same.
    assert!(user.saved_tasks().await.is_empty());
    let again = user.run(&["resume", id, "--server", server.url()]).await;
    assert_eq!(again.out, "yes declined\n");
    let late = user.run(&["answer", id, "--server", server.url(), "--decline"]).await;
    assert_eq!(late.code, 2);
    assert!(late.err.contains("it is completed"), "{}", late.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_leaves_the_answers_to_others() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let detached = user.run(&["call", server.url(), "ask", "--detach"]).await;
    let id = detached.out.trim();
    let watching = user.command(&["watch", id, "-o", "json"]).spawn().unwrap();
    until("it asks", async || {
        user.run(&["get", id]).await.out.contains("question go").then_some(())
    })
    .await;
    assert_eq!(user.run(&["answer", id, "-a", "confirm=true"]).await.code, 0);
    let output = within("the watch ends", watching.wait_with_output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let out = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "status");
    assert_eq!(lines.last().unwrap()["outcome"], "success");
    assert_eq!(lines.last().unwrap()["result"]["content"][0]["text"], "yes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_started_by_its_command() {
    let user = User::new();
    let server = stdio_server();
    let call = async |more: &[&str]| {
        user.run(&[&["call", &server, "-e", "MCP_TASKS_TRANSPORT=stdio"], more].concat())
            .await
    };
    let ran = call(&["required", "-a", "text=ab", "-a", "times=2"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "abab\n"));
    // What it logs is marked as its words.
    assert!(ran.err.contains("server: "), "{}", ran.err);
    let asks = call(&["ask", "-q"]).await;
    assert_eq!(asks.code, 5);
    assert!(!asks.err.contains("server: "), "{}", asks.err);
    assert!(
        asks.err.contains("mcp-tasks resume -e MCP_TASKS_TRANSPORT=… "),
        "{}",
        asks.err
    );
    assert!(!std::fs::read_to_string(user.state()).unwrap().contains("stdio\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_comes_from_the_environment_and_goes_to_the_server_alone() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let headers = seen.clone();
    let script = scripted(move |asked| {
        headers
            .lock()
            .unwrap()
            .push(asked.headers.get("authorization").cloned());
        match asked.method.as_str() {
            "tools/call" => Reply::Result(created()),
            "tasks/get" if asked.before < 3 => Reply::Result(working()),
            "tasks/get" => Reply::Result(done()),
            _ => Reply::Error(-32601, "unknown method"),
        }
    });
    let url = script.listen().await;
    let user = User::new().with("MCP_TASKS_TOKEN", "tell-nobody\n");
    let mut child = user.command(&["call", &url, "t", "-o", "json"]).spawn().unwrap();
    let pid = child.id().unwrap();
    until("the server is asked", async || {
        (!seen.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    #[cfg(target_os = "linux")]
    assert!(
        !std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .unwrap()
            .contains("tell-nobody")
    );
    assert!(within("it ends", child.wait()).await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let all = seen.lock().unwrap().clone();
    assert!(
        all.iter()
            .all(|header| header.as_ref().is_some_and(|value| value == "Bearer tell-nobody")),
        "{all:?}"
    );
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!said.contains("tell-nobody"), "{said}");

    // Not even where it is refused, and not in the environment of a child.
    let refuses = scripted(|_| Reply::Http(401, "text/plain", vec![("www-authenticate", "Bearer")], String::new()));
    let ran = user.run(&["call", &refuses.listen().await, "t"]).await;
    assert_eq!(ran.code, 7);
    assert!(
        ran.err.contains("MCP_TASKS_TOKEN") && !ran.err.contains("tell-nobody"),
        "{}",
        ran.err
    );
    let child = user.run(&["tools", "stdio:sh -c 'env >&2'"]).await;
    assert!(
        child.err.contains("server: HOME=") && !child.err.contains("tell-nobody"),
        "{}",
        child.err
    );
    let odd = User::new().with("MCP_TASKS_TOKEN", "tell\u{1b}nobody");
    let ran = odd.run(&["call", &url, "t"]).await;
    assert_eq!(ran.code, 2);
    assert!(!ran.err.contains("nobody"), "{}", ran.err);
}
