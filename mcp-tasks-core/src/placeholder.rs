//! `${key}` and `${key:default}` in the strings of attributes and configuration.
//!
//! A [`Template`] is parsed once, where the text stands, and resolved when the values are known. Parsing sees every
//! mistake of spelling, so for a literal in an attribute that is compile time.
//!
//! | written | result |
//! |---|---|
//! | `${T}` | the value of `T`; without one it is an error |
//! | `${T:PT5M}` | the value of `T`, or `PT5M`; a default runs to the next `}` and may hold `:` |
//! | `${T:}` | the value of `T`, or the empty text |
//! | `x${T}y`, `${A}${B}` | the parts one after another |
//! | `$`, `$5`, `$$`, `}` | themselves: only `${` begins a placeholder |
//! | `$${T}` | the text `${T}`: a second `$` escapes |
//! | `${A${B}}`, `${A:${B}}`, `${A:$${B}}` | refused: placeholders do not nest, and a default holds no `${` |
//! | `${T` | refused: not closed |
//! | `${}`, `${:x}` | refused: no key |
//! | `${a b}` | refused: a key holds ASCII letters, digits, `.`, `-` and `_` |
//! | a value that holds `${…}` | taken as it is, never expanded again |
//!
//! The last one keeps values from outside from reaching other settings.

/// Why a text was refused as a template, or could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceholderError {
    /// A `${` without its `}`.
    #[error(
        "the placeholder `{placeholder}` in `{text}` is not closed; write `${{key}}` or `${{key:default}}`, or `$${{` for a literal `${{`"
    )]
    #[non_exhaustive]
    Unclosed {
        /// From the `${` to the end of the text.
        placeholder: String,
        /// The whole text.
        text: String,
    },
    /// A placeholder inside a placeholder.
    #[error("the placeholder `{placeholder}` in `{text}` holds another one; placeholders do not nest")]
    #[non_exhaustive]
    Nested {
        /// From the outer `${` to the first `}`, or to the end of the text.
        placeholder: String,
        /// The whole text.
        text: String,
    },
    /// A placeholder whose key is empty.
    #[error("the placeholder `{placeholder}` in `{text}` has no key; write `${{key}}` or `${{key:default}}`")]
    #[non_exhaustive]
    EmptyKey {
        /// The placeholder.
        placeholder: String,
        /// The whole text.
        text: String,
    },
    /// A key with a character that keys do not have.
    #[error(
        "the key of the placeholder `{placeholder}` in `{text}` holds {character:?}; keys hold letters, digits, `.`, `-` and `_`"
    )]
    #[non_exhaustive]
    InvalidKey {
        /// The placeholder.
        placeholder: String,
        /// The first character that is not allowed.
        character: char,
        /// The whole text.
        text: String,
    },
    /// A placeholder without a default, and nothing configured for its key.
    #[error("the placeholder `${{{key}}}` in `{text}` has no value; set `{key}` (environment: `{env}`) or give it a default as in `${{{key}:default}}`", env = env_name(.key))]
    #[non_exhaustive]
    Missing {
        /// The key.
        key: String,
        /// The whole text.
        text: String,
    },
}

/// A text with placeholders, parsed.
///
/// ```
/// use mcp_tasks_core::placeholder::Template;
///
/// let template = Template::parse("${video.ttl:PT2H}").unwrap();
/// assert_eq!(template.keys().collect::<Vec<_>>(), ["video.ttl"]);
/// assert_eq!(template.resolve(|_| None).unwrap(), "PT2H");
/// assert_eq!(template.resolve(|_| Some("PT5M".to_owned())).unwrap(), "PT5M");
///
/// assert!(Template::parse("PT5M").unwrap().is_literal());
/// assert!(Template::parse("${A${B}}").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder { key: String, default: Option<String> },
}

impl Template {
    /// Parses a text; the [module](self) has the table of spellings.
    ///
    /// # Errors
    ///
    /// Every [`PlaceholderError`] but [`PlaceholderError::Missing`]. The first mistake in the text is the one reported.
    pub fn parse(text: &str) -> Result<Self, PlaceholderError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, from_opening) = rest.split_at(at);
            if let Some(before) = before.strip_suffix('$') {
                literal.push_str(before);
                literal.push_str("${");
                rest = &from_opening[2..];
                continue;
            }
            literal.push_str(before);
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            let (part, after) = placeholder(from_opening, text)?;
            parts.push(part);
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// Whether there is no placeholder in it, so that [`resolve`](Self::resolve) never fails and asks for nothing.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.keys().next().is_none()
    }

    /// The keys in the order in which they stand in the text, as often as they stand there.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Placeholder { key, .. } => Some(key.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.text
    }

    /// Puts in the value of each key, as it is, or the default where `lookup` has none.
    ///
    /// An empty value is a value: it wins over the default.
    ///
    /// # Errors
    ///
    /// [`PlaceholderError::Missing`] for the first key that has neither.
    pub fn resolve(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, PlaceholderError> {
        let mut resolved = String::with_capacity(self.text.len());
        for part in &self.parts {
            match part {
                Part::Text(text) => resolved.push_str(text),
                Part::Placeholder { key, default } => match (lookup(key), default) {
                    (Some(value), _) => resolved.push_str(&value),
                    (None, Some(default)) => resolved.push_str(default),
                    (None, None) => {
                        return Err(PlaceholderError::Missing {
                            key: key.clone(),
                            text: self.text.clone(),
                        });
                    }
                },
            }
        }
        Ok(resolved)
    }
}

/// The environment variable a key is read from: upper case, everything else than ASCII letters and digits is `_`.
///
/// Two keys may map to one name; a reader of the environment has to refuse that.
///
/// ```
/// use mcp_tasks_core::placeholder::env_name;
///
/// assert_eq!(env_name("mcp.tasks.default-ttl"), "MCP_TASKS_DEFAULT_TTL");
/// ```
#[must_use]
pub fn env_name(key: &str) -> String {
    key.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect()
}

/// Parses the placeholder at the start of `from_opening`, and gives what follows it. `text` is for the errors.
fn placeholder<'a>(from_opening: &'a str, text: &str) -> Result<(Part, &'a str), PlaceholderError> {
    let inside = &from_opening[2..];
    let closing = inside.find('}');
    // An inner opening is looked for first: the first `}` then belongs to it, so the outer one would be misread.
    if inside[..closing.unwrap_or(inside.len())].contains("${") {
        let end = closing.map_or(from_opening.len(), |closing| closing + 3);
        return Err(PlaceholderError::Nested {
            placeholder: from_opening[..end].to_owned(),
            text: text.to_owned(),
        });
    }
    let Some(closing) = closing else {
        return Err(PlaceholderError::Unclosed {
            placeholder: from_opening.to_owned(),
            text: text.to_owned(),
        });
    };
    let (written, after) = from_opening.split_at(closing + 3);
    let (key, default) = match inside[..closing].split_once(':') {
        Some((key, default)) => (key, Some(default.to_owned())),
        None => (&inside[..closing], None),
    };
    if key.is_empty() {
        return Err(PlaceholderError::EmptyKey {
            placeholder: written.to_owned(),
            text: text.to_owned(),
        });
    }
    // ASCII only: the environment name of a key must not depend on how Unicode changes case.
    if let Some(character) = key
        .chars()
        .find(|&c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_'))
    {
        return Err(PlaceholderError::InvalidKey {
            placeholder: written.to_owned(),
            character,
            text: text.to_owned(),
        });
    }
    Ok((
        Part::Placeholder {
            key: key.to_owned(),
            default,
        },
        after,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(key: &str) -> Option<String> {
        match key {
            "T" => Some("PT1H".to_owned()),
            "B" => Some("b".to_owned()),
            "empty" => Some(String::new()),
            "sly" => Some("${T}".to_owned()),
            _ => None,
        }
    }

    fn resolve(text: &str) -> Result<String, PlaceholderError> {
        Template::parse(text)?.resolve(values)
    }

    #[test]
    fn every_good_spelling_has_one_result() {
        let table = [
            ("", ""),
            ("PT5M", "PT5M"),
            ("${T}", "PT1H"),
            ("${T:PT5M}", "PT1H"),
            ("${unset:PT5M}", "PT5M"),
            ("${unset:}", ""),
            ("${empty}", ""),
            ("${empty:x}", ""),
            ("${unset:redis://h:1/0}", "redis://h:1/0"),
            ("${unset:$5}", "$5"),
            ("x${T}y", "xPT1Hy"),
            ("${T}${B}", "PT1Hb"),
            ("ä${T}ß", "äPT1Hß"),
            ("${unset:ä}", "ä"),
            ("$", "$"),
            ("$5 and {T}", "$5 and {T}"),
            ("a$", "a$"),
            ("$$", "$$"),
            ("}", "}"),
            ("$${T}", "${T}"),
            ("$$${T}", "$${T}"),
            ("$${", "${"),
            ("$${${T}}", "${PT1H}"),
            ("${sly}", "${T}"),
            ("${video.ttl-1_x:d}", "d"),
        ];
        for (text, expected) in table {
            assert_eq!(resolve(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_bad_spelling_is_refused_naming_placeholder_and_text() {
        let table = [
            ("a${T", "the placeholder `${T` in `a${T` is not closed"),
            ("${", "the placeholder `${` in `${` is not closed"),
            ("${T:x", "`${T:x` in `${T:x` is not closed"),
            ("${A${B}}", "the placeholder `${A${B}` in `${A${B}}` holds another one"),
            ("${A:${B}}", "`${A:${B}` in `${A:${B}}` holds another one"),
            ("${A${B", "`${A${B` in `${A${B` holds another one"),
            ("${A$${B}}", "holds another one"),
            ("x${}", "the placeholder `${}` in `x${}` has no key"),
            ("${:x}", "the placeholder `${:x}` in `${:x}` has no key"),
            ("${a b}", "the key of the placeholder `${a b}` in `${a b}` holds ' '"),
            ("${ T}", "holds ' '"),
            ("${{T}}", "holds '{'"),
            ("${ä}", "holds 'ä'"),
            ("${T}${", "`${` in `${T}${` is not closed"),
            (
                "x${no.such-key}",
                "the placeholder `${no.such-key}` in `x${no.such-key}` has no value; set `no.such-key` (environment: `NO_SUCH_KEY`)",
            ),
        ];
        for (text, expected) in table {
            let error = resolve(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn keys_come_in_order_and_literals_have_none() {
        let template = Template::parse("${b}-${a:x}-${b}").unwrap();
        assert_eq!(template.keys().collect::<Vec<_>>(), ["b", "a", "b"]);
        assert_eq!(template.source(), "${b}-${a:x}-${b}");
        assert!(!template.is_literal());
        for literal in ["", "PT1H", "$5", "$${T}"] {
            assert!(Template::parse(literal).unwrap().is_literal(), "{literal}");
        }
    }

    #[test]
    fn a_lookup_is_asked_once_per_placeholder_and_never_for_a_value() {
        let asked = std::cell::RefCell::new(Vec::new());
        let template = Template::parse("${sly}${T}").unwrap();
        let lookup = |key: &str| {
            asked.borrow_mut().push(key.to_owned());
            values(key)
        };
        assert_eq!(template.resolve(lookup).as_deref(), Ok("${T}PT1H"));
        assert_eq!(*asked.borrow(), ["sly", "T"]);
    }

    #[test]
    fn environment_names_are_upper_case_with_underscores() {
        assert_eq!(env_name("mcp.tasks.default-ttl"), "MCP_TASKS_DEFAULT_TTL");
        assert_eq!(env_name("aZ9_ä"), "AZ9__");
    }
}
