//! That the check sees an arrow that is turned, however it is written.

use std::collections::BTreeMap;

use super::{A_CIRCLE, circles, faults};

/// A tree in which all arrows go down.
const TREE: &[(&str, &str)] = &[
    (
        "lib.rs",
        "pub mod client; mod context; mod run; mod task; mod tool; pub use crate::tool::Caller; pub use serde;",
    ),
    ("client.rs", "use serde::Deserialize; pub struct Client;"),
    (
        "context.rs",
        "mod step; pub use step::Step; use crate::Caller; pub struct Context(Caller);",
    ),
    (
        "context/step.rs",
        "use super::Context; use crate::run::Body; pub struct Step(Context, Body);",
    ),
    ("run.rs", "pub struct Body(crate::tool::Caller);"),
    (
        "task.rs",
        "use crate::{context::Step, run::{self, Body}}; fn f(step: Step) -> run::Body { todo!() }",
    ),
    (
        "tool.rs",
        "mod caller; pub(crate) use caller::Caller; #[cfg(test)] mod tests { use crate::task; }",
    ),
    ("tool/caller.rs", "pub struct Caller; #[cfg(test)] mod tests;"),
];

fn with(changed: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<String, String> = TREE
        .iter()
        .map(|(file, text)| (file.to_string(), text.to_string()))
        .chain(changed.iter().map(|(file, more)| {
            let text = TREE.iter().find(|(name, _)| name == file).map_or("", |(_, text)| text);
            (file.to_string(), format!("{text} {more}"))
        }))
        .collect();
    // A turned arrow may close a circle as well; circles have a test of their own.
    faults(&files, &[])
        .into_iter()
        .filter(|fault| !fault.contains("circle"))
        .collect()
}

#[test]
fn a_tree_whose_arrows_go_down_has_no_fault() {
    assert_eq!(with(&[]), [""; 0]);
}

#[test]
fn a_turned_arrow_is_found_in_every_way_of_writing_it() {
    for turned in [
        "use crate::task::run_it;",
        "use crate::{Caller, task::{self, run_it as other}};",
        "use super::task;",
        "use crate::task::*;",
        "fn f() { crate::task::run_it(); }",
        "fn f() { use crate::task; task::run_it(); }",
        "fn f() { super::task::run_it(); }",
        "type T = Vec<crate::task::Task>;",
        "impl crate::task::Work for Body {}",
        "mod inner { fn f() { super::super::task::run_it(); } }",
        "fn f() { println!(\"{}\", [crate::task::run_it()].len()); }",
        "macro_rules! m { () => { $crate::task::run_it() }; }",
        "#[cfg(feature = \"testing\")] use crate::task;",
        "pub use crate::task::run_it;",
    ] {
        assert_eq!(
            with(&[("run.rs", turned)]),
            ["run.rs names task.rs, and `task` is not below `run`"],
            "{turned}"
        );
    }
}

#[test]
fn a_name_is_followed_through_its_re_exports() {
    let through_the_root = with(&[
        ("lib.rs", "pub use crate::task::Task;"),
        ("run.rs", "use crate::Task;"),
        ("task.rs", "pub struct Task;"),
    ]);
    assert_eq!(
        through_the_root,
        ["run.rs names task.rs, and `task` is not below `run`"]
    );
    let through_all = with(&[
        ("lib.rs", "pub use crate::task::*;"),
        ("run.rs", "use crate::Task;"),
        ("task.rs", "pub struct Task;"),
    ]);
    assert_eq!(through_all, ["run.rs names task.rs, and `task` is not below `run`"]);
}

#[test]
fn neighbours_and_what_is_over_the_core_alone_are_apart() {
    assert_eq!(
        with(&[("client.rs", "use crate::tool::Caller;")]),
        ["client.rs names tool/caller.rs, and `tool` is not below `client`"]
    );
    assert_eq!(
        with(&[("task.rs", "use crate::client::Client;")]),
        ["task.rs names client.rs, and `client` is not below `task`"]
    );
}

#[test]
fn what_is_shown_is_named_by_nothing_and_a_file_has_a_floor() {
    assert_eq!(
        with(&[
            ("lib.rs", "#[path = \"private.rs\"] pub mod __private;"),
            ("private.rs", "pub struct Door;"),
            ("tool.rs", "use crate::__private::Door;")
        ]),
        ["tool.rs names private.rs, and `private` is not below `tool`"]
    );
    assert_eq!(
        with(&[("lib.rs", "mod other;"), ("other.rs", "use crate::tool::Caller;")]),
        ["other.rs names tool/caller.rs, and `tool` is not below `other`"]
    );
}

#[test]
fn an_exception_holds_for_one_file_and_only_while_it_is_needed() {
    let files: BTreeMap<String, String> = [
        ("lib.rs", "mod run; mod task;"),
        ("run.rs", "use crate::task;"),
        ("task.rs", ""),
    ]
    .map(|(file, text)| (file.to_owned(), text.to_owned()))
    .into();
    assert_eq!(faults(&files, &[("run.rs", "task")]), [""; 0]);
    assert_eq!(
        faults(&files, &[("run.rs", "task"), ("run.rs", "host")]),
        ["the exception for run.rs is not needed: `host`"]
    );
}

#[test]
fn a_file_may_be_excepted_from_a_circle_while_it_is_in_one() {
    let files: BTreeMap<String, String> = [
        ("lib.rs", "mod task;"),
        ("task.rs", "mod a; mod b; mod c;"),
        ("task/a.rs", "use super::b::B; pub struct A;"),
        ("task/b.rs", "use super::c::C; pub struct B;"),
        ("task/c.rs", "use super::a::A; pub struct C;"),
    ]
    .map(|(file, text)| (file.to_owned(), text.to_owned()))
    .into();
    assert_eq!(
        faults(&files, &[]),
        ["files in a circle: task/a.rs, task/b.rs, task/c.rs"]
    );
    assert_eq!(faults(&files, &[("task/b.rs", A_CIRCLE)]), [""; 0]);
    assert_eq!(
        faults(&files, &[("task/b.rs", A_CIRCLE), ("task.rs", A_CIRCLE)]),
        ["the exception for task.rs is not needed: `a circle`"]
    );
}

#[test]
fn circles_are_of_more_than_two_files_and_a_child_may_look_up() {
    let found = |arrows: &[(&str, &str)]| {
        let arrows = arrows
            .iter()
            .map(|(from, to)| (from.to_string(), to.to_string()))
            .collect();
        circles(&arrows)
            .into_iter()
            .map(|circle| circle.join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[("a.rs", "b.rs"), ("b.rs", "a.rs")]), [""; 0]);
    assert_eq!(
        found(&[("a.rs", "b.rs"), ("b.rs", "c.rs"), ("c.rs", "a.rs"), ("c.rs", "d.rs")]),
        ["a.rs b.rs c.rs"]
    );
    // A parent and its children.
    assert_eq!(
        found(&[
            ("a.rs", "a/x.rs"),
            ("a/x.rs", "a.rs"),
            ("a.rs", "a/y.rs"),
            ("a/y.rs", "a.rs")
        ]),
        [""; 0]
    );
    // Siblings.
    assert_eq!(
        found(&[
            ("a/x.rs", "a/y.rs"),
            ("a/y.rs", "a/z.rs"),
            ("a/z.rs", "a/x.rs"),
            ("a.rs", "a/x.rs"),
            ("a/x.rs", "a.rs")
        ]),
        ["a/x.rs a/y.rs a/z.rs"]
    );
    // By way of a parent and out of its module.
    assert_eq!(
        found(&[("a.rs", "b/y.rs"), ("b/y.rs", "b.rs"), ("b.rs", "a.rs")]),
        ["a.rs b.rs b/y.rs"]
    );
}
