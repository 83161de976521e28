//! Asking in the terminal. Everything here blocks.

use std::fmt;

use inquire::list_option::ListOption;
use inquire::validator::Validation;
use inquire::{Confirm, InquireError, MultiSelect, Select, Text};
use serde_json::{Map, Value};

use crate::schema::{Choice, Field, fields, plain};
use crate::text;

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    Accept(T),
    Decline,
    /// Dismissed without a choice.
    Cancel,
    /// To be answered another time.
    Later,
    /// Ctrl-C.
    Interrupted,
    /// The terminal does not work.
    Broken(String),
}

/// What Escape offers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum OtherChoice {
    Continue,
    Decline,
    Dismiss,
    Later,
}

impl fmt::Display for OtherChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Continue => "Answer it after all",
            Self::Decline => "Decline to answer",
            Self::Dismiss => "Dismiss the question without a choice",
            Self::Later => "Leave it open, and answer another time",
        })
    }
}

/// What a prompt without an answer means.
fn reply_without_answer<T>(error: InquireError) -> Reply<T> {
    match error {
        InquireError::OperationInterrupted => Reply::Interrupted,
        // Escape in the menu of last resort: nothing is decided.
        InquireError::OperationCanceled => Reply::Later,
        other => Reply::Broken(other.to_string()),
    }
}

/// The ways out of a question; nothing if it is to be answered after all.
fn other_choices<T>() -> Option<Reply<T>> {
    let others = vec![
        OtherChoice::Continue,
        OtherChoice::Decline,
        OtherChoice::Dismiss,
        OtherChoice::Later,
    ];
    match Select::new("This question:", others).without_filtering().prompt() {
        Ok(OtherChoice::Continue) => None,
        Ok(OtherChoice::Decline) => Some(Reply::Decline),
        Ok(OtherChoice::Dismiss) => Some(Reply::Cancel),
        Ok(OtherChoice::Later) => Some(Reply::Later),
        Err(error) => Some(reply_without_answer(error)),
    }
}

/// Fills in a form, field by field.
pub(crate) fn ask_form(schema: &Map<String, Value>) -> Reply<Map<String, Value>> {
    let fields = fields(&Value::Object(schema.clone()));
    let mut content = Map::new();
    if fields.is_empty() {
        // A question without fields asks for consent.
        return match ask_consent("Agree") {
            Reply::Accept(()) => Reply::Accept(content),
            Reply::Decline => Reply::Decline,
            Reply::Cancel => Reply::Cancel,
            Reply::Later => Reply::Later,
            Reply::Interrupted => Reply::Interrupted,
            Reply::Broken(why) => Reply::Broken(why),
        };
    }
    for field in &fields {
        loop {
            match ask_field(field) {
                Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
                Ok(None) => {}
                Err(InquireError::OperationCanceled) => match other_choices() {
                    None => continue,
                    Some(asked) => return asked,
                },
                Err(error) => return reply_without_answer(error),
            }
            break;
        }
    }
    Reply::Accept(content)
}

/// Asks for consent alone.
pub(crate) fn ask_consent(agree: &str) -> Reply<()> {
    let decline = OtherChoice::Decline.to_string();
    let dismiss = OtherChoice::Dismiss.to_string();
    let later = OtherChoice::Later.to_string();
    let choices = vec![agree, &decline, &dismiss, &later];
    match Select::new("Your answer:", choices).without_filtering().raw_prompt() {
        Ok(ListOption { index: 0, .. }) => Reply::Accept(()),
        Ok(ListOption { index: 1, .. }) => Reply::Decline,
        Ok(ListOption { index: 2, .. }) => Reply::Cancel,
        Ok(_) => Reply::Later,
        Err(error) => reply_without_answer(error),
    }
}

/// One line of a menu.
#[derive(Debug, Clone)]
enum Line {
    Choice(Choice),
    LeaveOut,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(choice) => choice.fmt(f),
            Self::LeaveOut => f.write_str("(leave it out)"),
        }
    }
}

/// Asks for one field; `None` leaves it out.
fn ask_field(field: &Field) -> Result<Option<Value>, InquireError> {
    let label = text::line(field.text("title").unwrap_or(&field.name));
    let label = format!("{label}{}", if field.required { ":" } else { " (optional):" });
    let help = help(field);
    if let Some(choices) = field.many_choices() {
        return ask_many(field, &label, &help, choices);
    }
    if let Some(choices) = field.choices() {
        return ask_one(field, &label, &help, choices);
    }
    if field.is("boolean") {
        return match field.default().and_then(Value::as_bool) {
            None if !field.required => {
                let choice = |value: bool, title: &str| Choice {
                    value: value.into(),
                    title: Some(title.to_owned()),
                };
                ask_one(field, &label, &help, vec![choice(true, "yes"), choice(false, "no")])
            }
            default => {
                let mut prompt = Confirm::new(&label).with_help_message(&help).with_placeholder("y/n");
                prompt.default = default;
                Ok(Some(prompt.prompt()?.into()))
            }
        };
    }
    ask_text(field, &label, &help)
}

/// The description, what the schema demands, and the way out.
fn help(field: &Field) -> String {
    let mut words = Vec::new();
    if let Some(description) = field.text("description") {
        words.push(text::short(description, 200));
    }
    if field.choices().is_none() && field.many_choices().is_none() && !field.is("boolean") && !field.is("string") {
        words.push(field.expected());
    }
    let limits = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("exclusiveMinimum", "more than"),
        ("exclusiveMaximum", "less than"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("minItems", "chosen at least"),
        ("maxItems", "chosen at most"),
        ("format", "format"),
        ("pattern", "pattern"),
    ];
    for (member, words_for_it) in limits {
        if let Some(limit) = field.schema.get(member) {
            words.push(format!("{words_for_it} {}", text::short(&plain(limit), 60)));
        }
    }
    words.push("Esc for other choices".to_owned());
    words.join("; ")
}

fn ask_one(field: &Field, label: &str, help: &str, choices: Vec<Choice>) -> Result<Option<Value>, InquireError> {
    let start = field
        .default()
        .and_then(|default| choices.iter().position(|choice| choice.value == *default));
    let mut lines: Vec<Line> = choices.into_iter().map(Line::Choice).collect();
    if !field.required {
        lines.push(Line::LeaveOut);
    }
    let help = format!("{help}; ↑↓ and Enter, or type to filter");
    let prompt = Select::new(label, lines)
        .with_help_message(&help)
        .with_starting_cursor(start.unwrap_or(0));
    Ok(match prompt.prompt()? {
        Line::Choice(choice) => Some(choice.value),
        Line::LeaveOut => None,
    })
}

fn ask_many(field: &Field, label: &str, help: &str, choices: Vec<Choice>) -> Result<Option<Value>, InquireError> {
    let preset: Vec<usize> = match field.default().and_then(Value::as_array) {
        Some(values) => {
            let chosen = choices
                .iter()
                .enumerate()
                .filter(|(_, choice)| values.contains(&choice.value));
            chosen.map(|(at, _)| at).collect()
        }
        None => Vec::new(),
    };
    let checked = field.clone();
    let validator = move |chosen: &[ListOption<&Choice>]| {
        if chosen.is_empty() && !checked.required {
            return Ok(Validation::Valid);
        }
        let value: Value = chosen.iter().map(|option| option.value.value.clone()).collect();
        Ok(verdict(&checked.problems(&value)))
    };
    let help = format!("{help}; Space chooses, Enter is the end");
    let prompt = MultiSelect::new(label, choices)
        .with_help_message(&help)
        .with_default(&preset)
        .with_validator(validator);
    let chosen: Vec<Value> = prompt.prompt()?.into_iter().map(|choice| choice.value).collect();
    Ok((field.required || !chosen.is_empty()).then_some(Value::Array(chosen)))
}

fn ask_text(field: &Field, label: &str, help: &str) -> Result<Option<Value>, InquireError> {
    let checked = field.clone();
    let validator = move |typed: &str| {
        if typed.is_empty() {
            return Ok(match checked.required {
                true => Validation::Invalid("An answer is needed here. Esc has other choices".into()),
                false => Validation::Valid,
            });
        }
        Ok(match checked.read(typed) {
            Ok(_) => Validation::Valid,
            Err(problem) => verdict(&[problem]),
        })
    };
    let default = field.default().map(|value| text::line(&plain(value)));
    let mut prompt = Text::new(label).with_help_message(help).with_validator(validator);
    if let Some(default) = &default {
        prompt = prompt.with_default(default);
    }
    let typed = prompt.prompt()?;
    // The default as it was sent, and not as it was shown.
    if default.as_ref() == Some(&typed) {
        return Ok(field.default().cloned());
    }
    Ok(match typed.is_empty() {
        true => None,
        false => field.read(&typed).ok(),
    })
}

fn verdict(problems: &[String]) -> Validation {
    match problems {
        [] => Validation::Valid,
        problems => Validation::Invalid(text::line(&problems.join("; ")).into()),
    }
}
