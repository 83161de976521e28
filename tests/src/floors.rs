//! The floors of `mcp-tasks`: its folders name each other in one direction.

mod arrows;
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arrows::{Arrow, arrows, is_inside};

/// Each floor and those right below it. It may name everything on the way down from there, and nothing else.
///
/// The ones that stand side by side do not name each other; `store` and `client` are over the core alone.
const FLOORS: &[(&str, &[&str])] = &[
    ("serve", &["host"]),
    ("operator", &["host"]),
    ("testing", &["host"]),
    ("host", &["call", "task", "store"]),
    ("call", &["context", "config"]),
    ("task", &["context", "config"]),
    ("context", &["run"]),
    ("config", &["run"]),
    ("run", &["tool"]),
    ("tool", &[]),
    ("store", &[]),
    ("client", &[]),
];

/// Above all floors: what users, generated code and readers see. They name what they show, and nothing names them.
const SHOWN: &[&str] = &["lib", "prelude", "private", "guide"];

/// What the tree does not keep yet: a file, and the floor that it names all the same, or [`A_CIRCLE`] that it is in. Shall be
/// empty; one that is not needed any more fails the test.
const EXCEPTIONS: &[(&str, &str)] = &[];

const A_CIRCLE: &str = "a circle";

/// What is wrong with the arrows of the crate with these files.
fn faults(files: &BTreeMap<String, String>, exceptions: &[(&str, &str)]) -> Vec<String> {
    let (all, mut needed) = arrows(files);
    let mut faults = Vec::new();
    let mut unused: BTreeSet<_> = exceptions.iter().collect();
    for arrow @ (from, to) in &all {
        let (above, below) = (floor(from), floor(to));
        if may_name(above, below) {
            continue;
        }
        match exceptions.iter().find(|(file, named)| *file == from && *named == below) {
            Some(exception) => {
                unused.remove(exception);
                needed.remove(arrow);
            }
            None => faults.push(format!("{from} names {to}, and `{below}` is not below `{above}`")),
        }
    }
    let circular: Vec<_> = exceptions.iter().filter(|(_, named)| *named == A_CIRCLE).collect();
    unused.retain(|exception| !circular.contains(exception) || !circles(&needed).concat().contains(&exception.0));
    needed.retain(|(from, _)| !circular.iter().any(|(file, _)| file == from));
    for (file, named) in unused {
        faults.push(format!("the exception for {file} is not needed: `{named}`"));
    }
    for circle in circles(&needed) {
        faults.push(format!("files in a circle: {}", circle.join(", ")));
    }
    faults
}

/// The folder that the file is in, or that belongs to it.
fn floor(file: &str) -> &str {
    let first = file.split('/').next().unwrap_or(file);
    first.trim_end_matches(".rs")
}

fn may_name(above: &str, below: &str) -> bool {
    let under = |floor: &str| FLOORS.iter().find(|(name, _)| *name == floor).map(|(_, under)| *under);
    if SHOWN.contains(&above) {
        return SHOWN.contains(&below) || under(below).is_some();
    }
    let steps = under(above).unwrap_or_default();
    (above == below && under(above).is_some()) || steps.iter().any(|step| may_name(step, below))
}

/// Sets of more than two files in which each leads to each other one.
///
/// A module and its own children are one thing in several files: the parent calls what a child does, and the child is about
/// the parent's types. So in a set that is one module's, arrows up to a parent do not count: what is left are circles of
/// siblings. In a set of several modules all arrows count.
fn circles(arrows: &BTreeSet<Arrow>) -> Vec<Vec<&str>> {
    let arrows: Vec<(&str, &str)> = arrows.iter().map(|(from, to)| (&**from, &**to)).collect();
    let mut circles = Vec::new();
    for set in strongly_connected(&arrows) {
        if set
            .iter()
            .any(|head| set.iter().all(|file| file == head || is_inside(file, head)))
        {
            let within = |(from, to): &&(&str, &str)| set.contains(from) && set.contains(to) && !is_inside(from, to);
            let down: Vec<_> = arrows.iter().filter(within).copied().collect();
            circles.extend(strongly_connected(&down));
        } else {
            circles.push(set);
        }
    }
    circles.retain(|circle| circle.len() > 2);
    circles
}

/// Sets of files in which each leads to each other one.
fn strongly_connected<'a>(arrows: &[(&'a str, &'a str)]) -> BTreeSet<Vec<&'a str>> {
    let mut onward: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for &(from, to) in arrows {
        onward.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = onward
        .keys()
        .map(|&start| {
            let (mut seen, mut ahead) = (BTreeSet::new(), vec![start]);
            while let Some(file) = ahead.pop() {
                let next = onward.get(file).into_iter().flatten();
                ahead.extend(next.filter(|&&file| seen.insert(file)));
            }
            (start, seen)
        })
        .collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let set_of = |file| {
        reached
            .keys()
            .copied()
            .filter(|other| leads(file, other) && leads(other, file))
            .collect()
    };
    reached.keys().copied().map(set_of).collect()
}

#[test]
fn arrows_between_the_floors_go_down() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp-tasks/src");
    let mut files = BTreeMap::new();
    read(&source, "", &mut files);
    let faults = faults(&files, EXCEPTIONS);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let entry = entry.expect("the folder can be read");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{name}/"), files);
        } else if name.ends_with(".rs") {
            files.insert(name, fs::read_to_string(entry.path()).expect("the file can be read"));
        }
    }
}
