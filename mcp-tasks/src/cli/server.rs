//! Which server, and the connection to it.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::oneshot;

use super::outcome::Stop;
use super::screen::Screen;
use crate::client::{TaskClient, TaskClientBuilder, without_secrets};

/// The variable with the bearer token.
const TOKEN: &str = "MCP_TASKS_TOKEN";

/// Lines of a server's log are cut here: nobody reads longer ones, and a server may write without an end.
const LONGEST_LINE: u64 = 8 * 1024;

/// How long the log of a server that did not start is waited for: it is in the pipe already, unless something that the server
/// started keeps the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A server, as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Server {
    /// A URL.
    Http(String),
    /// A command, as written and as words.
    Command { line: String, words: Vec<String> },
}

impl Server {
    pub(super) fn parse(text: &str) -> Result<Self, Stop> {
        if let Some(line) = text.strip_prefix("stdio:") {
            let words = shlex::split(line)
                .ok_or_else(|| Stop::usage(format!("the quotes in the command {line:?} do not match")))?;
            if words.is_empty() {
                return Err(Stop::usage("there is no command after stdio:"));
            }
            return Ok(Self::Command {
                line: line.trim().to_owned(),
                words,
            });
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => match reqwest::Url::parse(text) {
                Ok(url) if url.has_host() => Ok(Self::Http(text.to_owned())),
                _ => Err(Stop::usage(format!("{:?} is no URL", without_secrets(text)))),
            },
            // What is no URL may be a token that was pasted in the wrong place, so it is not repeated.
            _ => Err(Stop::usage(
                "a server is a URL (http://127.0.0.1:8080/mcp) or a command (\"stdio:npx -y some-server\")",
            )),
        }
    }

    /// The server as it may be kept, and whether it is whole: secrets in a URL are left out.
    pub(super) fn kept(&self) -> (String, bool) {
        match self {
            Self::Http(url) => {
                let kept = without_secrets(url);
                let same = reqwest::Url::parse(url).is_ok_and(|whole| whole.as_str() == kept);
                (kept, same)
            }
            Self::Command { line, .. } => (format!("stdio:{line}"), true),
        }
    }

    /// Whether the server ends with this program.
    pub(super) const fn is_child(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    /// Connects.
    pub(super) async fn connect(
        &self,
        builder: TaskClientBuilder,
        envs: &[(String, String)],
        screen: &Screen,
    ) -> Result<TaskClient, Stop> {
        let builder = builder.name("mcp-tasks", env!("CARGO_PKG_VERSION"));
        let client = match self {
            Self::Http(url) => {
                let builder = match token()? {
                    Some(token) => builder.bearer(token),
                    None => builder,
                };
                builder.connect_http(url).await?
            }
            Self::Command { words, .. } => {
                let mut command = Command::new(&words[0]);
                // The token is for servers that are reached over a network.
                command.args(&words[1..]).env_remove(TOKEN).envs(envs.iter().cloned());
                // Ctrl-C is for this program alone: a server that it reached would end before its task is called off.
                #[cfg(unix)]
                command.process_group(0);
                let (writer, read) = log(screen)?;
                command.stderr(writer);
                match builder.connect_command(command).await {
                    Ok(client) => client,
                    Err(error) => {
                        // A server that did not start has said why, and that comes before the words for it here.
                        let _ = tokio::time::timeout(LAST_WORDS, read).await;
                        return Err(error.into());
                    }
                }
            }
        };
        Ok(client)
    }
}

fn token() -> Result<Option<String>, Stop> {
    let Ok(token) = std::env::var(TOKEN) else {
        return match std::env::var_os(TOKEN) {
            Some(_) => Err(Stop::usage(format!("{TOKEN} is no text"))),
            None => Ok(None),
        };
    };
    // Files that tokens come from end with a line end.
    let token = token.trim();
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Stop::usage(format!("{TOKEN} has characters that no token has")));
    }
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

/// Where a child writes its log: through here, since it may write anything. What comes with it resolves, by an error, once
/// all of it is on the screen.
fn log(screen: &Screen) -> Result<(std::io::PipeWriter, oneshot::Receiver<()>), Stop> {
    let (reader, writer) =
        std::io::pipe().map_err(|error| Stop::local(format!("the server's log has no way here: {error}")))?;
    let screen = screen.clone();
    let (all_read, read) = oneshot::channel();
    std::thread::spawn(move || {
        let _all_read: oneshot::Sender<()> = all_read;
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let line = String::from_utf8_lossy(&line);
                    screen.hint(&format!("server: {}", line.trim_end()));
                }
            }
        }
    });
    Ok((writer, read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_url_or_a_command() {
        let parse = |text: &str| Server::parse(text).ok();
        assert_eq!(parse("http://h:1/mcp"), Some(Server::Http("http://h:1/mcp".to_owned())));
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(
            parse("stdio:npx -y 'a b'"),
            Some(Server::Command {
                line: "npx -y 'a b'".to_owned(),
                words: words(&["npx", "-y", "a b"]),
            })
        );
        for wrong in [
            "",
            "npx",
            "stdio:",
            "stdio: ",
            "stdio:'",
            "ftp://h",
            "http://",
            "localhost:8080",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_in_a_url_is_not_kept() {
        let kept = |url: &str| Server::parse(url).unwrap().kept();
        assert_eq!(kept("http://h:1/mcp"), ("http://h:1/mcp".to_owned(), true));
        assert_eq!(kept("http://u:p@h:1/mcp?key=k"), ("http://h:1/mcp".to_owned(), false));
    }
}
