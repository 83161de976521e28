//! Text of others, made fit for a terminal.

use std::borrow::Cow;

/// Whether a terminal does something else with it than show it: control characters, C1 ones included; what turns the
/// direction of text round; line ends that are no `\n`; what cannot be seen at all.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        )
        // Blanks that are letters to Unicode, a soft hyphen, and what only changes the look of the character before.
        || matches!(
            c,
            '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        )
        || matches!(c, '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FFA0}' | '\u{E0100}'..='\u{E01EF}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// The text with what [`is_unsafe`] made visible, as `\u{1b}`. Line ends and tabs stay.
pub(crate) fn block(text: &str) -> Cow<'_, str> {
    let keeps = |c: char| matches!(c, '\n' | '\t') || !is_unsafe(c);
    if text.chars().all(keeps) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if keeps(c) => clean.push(c),
            c => clean.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(clean)
}

/// The text on one line, its spaces as single ones.
pub(crate) fn line(text: &str) -> String {
    block(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// [`line`], no longer than so many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = line(text);
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => {
            let start: String = line.chars().take(most.saturating_sub(1)).collect();
            format!("{start}…")
        }
    }
}

/// JSON without anything that [`is_unsafe`]; it reads as the same value.
pub(crate) fn json(value: &serde_json::Value) -> String {
    escaped(format!("{value:#}"))
}

/// [`json`] on one line.
pub(crate) fn json_line(value: &serde_json::Value) -> String {
    escaped(value.to_string())
}

fn escaped(text: String) -> String {
    if text.chars().all(|c| c == '\n' || !is_unsafe(c)) {
        return text;
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Outside strings nothing is unsafe but line ends, and inside there are none.
        if c == '\n' || !is_unsafe(c) {
            clean.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                clean.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn nothing_unsafe_gets_through() {
        for c in (0..=0x0010_FFFF).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            for clean in [block(&text).into_owned(), line(&text), super::json(&json!(text))] {
                let left = clean.chars().filter(|&c| is_unsafe(c)).collect::<String>();
                assert!(matches!(left.as_str(), "" | "\n" | "\t"), "{c:?} in {clean:?}");
            }
        }
        assert_eq!(
            block("a\u{180E}\u{3164}\u{115F}\u{FE0F}"),
            "a\\u{180e}\\u{3164}\\u{115f}\\u{fe0f}"
        );
        assert_eq!(block("\u{1b}[2J\u{9b}0m"), "\\u{1b}[2J\\u{9b}0m");
        assert_eq!(block("a\r\nb\rc\td"), "a\nb\\u{d}c\td");
        assert_eq!(line(" a\n\tb\u{7} "), "a b\\u{7}");
    }

    #[test]
    fn people_write_in_all_languages() {
        for text in ["übermäßig", "日本語", "שלום", "👩\u{200d}🚀", "e\u{301}"] {
            assert_eq!(block(text), text);
        }
        assert_eq!(short("übermäßig", 5), "über…");
        assert_eq!(short("über", 4), "über");
    }

    #[test]
    fn json_reads_as_the_same_value() {
        let value = json!({"a\u{9b}": ["\u{202e}\u{e0041}\u{1b}\"\n", 1.5, null]});
        assert_eq!(serde_json::from_str::<Value>(&super::json(&value)).unwrap(), value);
    }
}
