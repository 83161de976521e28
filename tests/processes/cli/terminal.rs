//! In front of a terminal.

use serde_json::{Value, json};

use crate::cli::harness::{Fixture, User, beside, open_gate, stdio_server};

const CTRL_C: &str = "\u{3}";
const ESCAPE: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_and_the_result_stays() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "half", "--arg", "gate=progress"]);
    terminal.sees("1/2 half of it").await;
    // Half of a bar of 24.
    assert!(terminal.shows("[============"), "{}", terminal.screen());
    assert!(!terminal.shows("[============="), "{}", terminal.screen());
    open_gate(&beside(&server).await, "progress").await;
    assert_eq!(terminal.exit().await, 0);
    terminal.sees("all of it").await;
    assert!(!terminal.shows("half of it"), "{}", terminal.screen());
    assert!(user.saved_tasks().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_filled_in_field_by_field() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "survey"]);
    terminal.sees("What is to be made?").await;
    terminal.sees("title:").await;
    terminal.sees("Shown above everything").await;
    terminal.press("\r");
    terminal.sees("An answer is needed here").await;
    terminal.enter("A book");

    terminal.sees("pages:").await;
    terminal.enter("many");
    terminal.sees("a whole number is expected").await;
    terminal.press(&"\u{7f}".repeat(4));
    terminal.enter("300");
    terminal.sees("300 is greater than the maximum of 255").await;
    terminal.press(&"\u{7f}".repeat(3));
    terminal.enter("12");

    terminal.sees("quality:").await;
    terminal.sees("high").await;
    terminal.press(DOWN);
    terminal.press("\r");
    // Titles are shown, values are sent.
    terminal.sees("channels:").await;
    terminal.sees("The one for the brave").await;
    terminal.press(" ");
    terminal.press(DOWN);
    terminal.press(" ");
    terminal.press("\r");
    terminal.sees("backup (optional):").await;
    terminal.sees("(leave it out)").await;
    terminal.press(DOWN);
    terminal.press("\r");

    terminal.sees("contact (optional):").await;
    terminal.sees("nobody@example.org").await;
    terminal.enter("nowhere");
    terminal.sees("\"nowhere\" is not a \"email\"").await;
    terminal.press(&"\u{7f}".repeat(7));
    terminal.press("\r");
    terminal.sees("note (optional):").await;
    terminal.press("\r");
    terminal.sees("publish:").await;
    terminal.enter("y");
    assert_eq!(terminal.exit().await, 0, "{}", terminal.screen());

    let screen = terminal.screen();
    let result = screen
        .lines()
        .find(|line| line.starts_with('{'))
        .unwrap_or_else(|| panic!("{screen}"));
    let result: Value = serde_json::from_str(result).unwrap();
    let backup = result["backup"].clone();
    assert_eq!(
        result,
        json!({
            "title": "A book", "pages": 12, "quality": "high", "channels": result["channels"], "backup": backup,
            "contact": "nobody@example.org", "note": null, "publish": true,
        })
    );
    assert_eq!(result["channels"].as_array().unwrap().len(), 2);
    assert!(backup == "stable" || backup == "beta", "{backup}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_can_be_declined_dismissed_or_left_open() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    for (presses, outcome, code) in [(1, "declined", 0), (2, "dismissed", 0), (3, "it was left open", 5)] {
        let mut terminal = user.open(&["call", server.url(), "survey"]);
        terminal.sees("title:").await;
        terminal.press(ESCAPE);
        terminal.sees("Decline to answer").await;
        terminal.press("\r");
        // The first of the choices goes back to the question.
        terminal.sees("title:").await;
        terminal.press("x");
        terminal.sees("title: x").await;
        terminal.press(ESCAPE);
        terminal.sees("Leave it open").await;
        terminal.press(&DOWN.repeat(presses));
        terminal.press("\r");
        assert_eq!(terminal.exit().await, code, "{}", terminal.screen());
        terminal.sees(outcome).await;
    }
    assert_eq!(user.saved_tasks().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_shown_and_asked_about() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "visit"]);
    terminal.sees("Sign in, please.").await;
    terminal.sees("https://example.org/sign-in").await;
    terminal.sees("I have opened it").await;
    terminal.press("\r");
    assert_eq!(terminal.exit().await, 0);
    terminal.sees("visited").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_call_that_is_no_task_is_asked_too() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "plain_ask"]);
    terminal.sees("Go on?").await;
    terminal.sees("confirm:").await;
    terminal.enter("maybe");
    terminal.sees("Invalid answer").await;
    terminal.press(&"\u{7f}".repeat(5));
    terminal.enter("n");
    assert_eq!(terminal.exit().await, 0);
    terminal.sees("no").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_detaches_and_resume_goes_on() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "half", "-a", "gate=detach"]);
    terminal.sees("half of it").await;
    terminal.press(CTRL_C);
    terminal.sees("Ctrl-C again cancels the task").await;
    assert_eq!(terminal.exit().await, 130);
    let kept = user.saved_tasks().await;
    let id = kept[0]["taskId"].as_str().unwrap();
    terminal.sees(&format!("mcp-tasks resume {id}")).await;

    let mut again = user.open(&["resume", &id[..8]]);
    again.sees("half of it").await;
    open_gate(&beside(&server).await, "detach").await;
    assert_eq!(again.exit().await, 0);
    again.sees("all of it").await;
    assert!(user.saved_tasks().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_a_question_detaches_and_it_is_asked_again() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "ask"]);
    terminal.sees("confirm:").await;
    terminal.press(CTRL_C);
    assert_eq!(terminal.exit().await, 130, "{}", terminal.screen());
    assert!(!terminal.shows("not open any more"), "{}", terminal.screen());
    let id = user.saved_tasks().await[0]["taskId"].as_str().unwrap().to_owned();

    let mut again = user.open(&["resume", &id]);
    again.sees("confirm:").await;
    again.enter("y");
    assert_eq!(again.exit().await, 0);
    again.sees("yes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_twice_cancels_the_task() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "half", "-a", "gate=never"]);
    terminal.sees("half of it").await;
    terminal.press(CTRL_C);
    terminal.sees("Ctrl-C again cancels the task").await;
    terminal.press(CTRL_C);
    assert_eq!(terminal.exit().await, 4, "{}", terminal.screen());
    terminal.sees("was cancelled").await;
    assert!(user.saved_tasks().await.is_empty());
}

/// The key reaches the program and not the server that it started, which has to live for the task to be called off.
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_is_not_for_a_server_on_standard_streams() {
    let user = User::new();
    let server = stdio_server();
    let mut terminal = user.open(&[
        "call",
        &server,
        "-e",
        "MCP_TASKS_TRANSPORT=stdio",
        "half",
        "-a",
        "gate=never",
    ]);
    terminal.sees("half of it").await;
    terminal.press(CTRL_C);
    terminal.sees("Ctrl-C again cancels the task").await;
    terminal.press(CTRL_C);
    assert_eq!(terminal.exit().await, 4, "{}", terminal.screen());
}

/// Another client answers while the user thinks.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_was_answered_elsewhere_is_withdrawn() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let mut terminal = user.open(&["call", server.url(), "ask"]);
    terminal.sees("confirm:").await;
    let id = user.saved_tasks().await[0]["taskId"].as_str().unwrap().to_owned();
    let answered = user.run(&["answer", &id, "-a", "confirm=true"]).await;
    assert_eq!(answered.code, 0);
    assert_eq!(terminal.exit().await, 0, "{}", terminal.screen());
    terminal.sees("yes").await;
    // The terminal is as it was.
    let end = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let last = |on: &str| end.rfind(on);
    assert!(last("\u{1b}[?2004l") > last("\u{1b}[?2004h"), "pasting is as before");
    assert!(last("\u{1b}[?25h") > last("\u{1b}[?25l"), "there is a cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_can_be_asked_for_without_waiting() {
    let server = Fixture::http(&[]).await;
    let user = User::new();
    let called = user.run(&["call", server.url(), "ask", "--detach"]).await;
    assert_eq!(called.code, 0);
    let mut terminal = user.open(&["answer", called.out.trim()]);
    terminal.sees("Go on?").await;
    terminal.enter("y");
    assert_eq!(terminal.exit().await, 0, "{}", terminal.screen());
    terminal.sees("answered go").await;
    assert_eq!(user.run(&["resume", called.out.trim()]).await.out, "yes\n");
}
