//! Which server, and the connection to it.

use std::io::{BufRead, BufReader, Read};
use std::pin::pin;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::oneshot;
use url::Url;

use crate::outcome::CommandError;
use crate::screen::Screen;
use mcp_tasks::client::{ClientError, TaskClient, TaskClientBuilder};

/// The variable with the bearer token.
const TOKEN: &str = "MCP_TASKS_TOKEN";

/// The variable that says where a server made with mcp-tasks speaks MCP.
const TRANSPORT: &str = "MCP_TASKS_TRANSPORT";

/// How long a server that is started may take to answer for the first time: some are fetched before.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long nothing is said meanwhile: most servers that are there already have answered by then.
const START_HINT_AFTER: Duration = Duration::from_secs(5);

/// Lines of a server's log are cut here: no one line says more, and a server may write without an end.
const MAX_LOG_LINE: u64 = 8 * 1024;

/// How long the log of a server that did not start is waited for: it is in the pipe already, unless something that the server
/// started keeps the pipe open.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// A server, as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Server {
    Http(Url),
    /// A command, as written and as words.
    Command {
        line: String,
        words: Vec<String>,
    },
}

impl Server {
    pub(crate) fn parse(text: &str) -> Result<Self, CommandError> {
        if let Some(line) = text.strip_prefix("stdio:") {
            let words = shlex::split(line)
                .ok_or_else(|| CommandError::usage(format!("the quotes in the command {line:?} do not match")))?;
            if words.is_empty() {
                return Err(CommandError::usage("there is no command after stdio:"));
            }
            return Ok(Self::Command {
                line: line.trim().to_owned(),
                words,
            });
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            // The text is not repeated: it may have a secret in it.
            Some("http" | "https") => Url::parse(text)
                .map(Self::Http)
                .map_err(|error| CommandError::usage(format!("the URL of the server is not valid: {error}"))),
            // What is no URL may be a token that was pasted in the wrong place, so it is not repeated.
            _ => Err(CommandError::usage(
                "a server is a URL (http://127.0.0.1:8080/mcp) or a command (\"stdio:npx -y some-server\")",
            )),
        }
    }

    /// The server as it may be saved, and whether it is whole: secrets in a URL are left out.
    pub(crate) fn to_saved(&self) -> (String, bool) {
        match self {
            Self::Http(url) => {
                let safe = without_secrets(url.clone());
                let whole = safe == *url;
                (safe.into(), whole)
            }
            Self::Command { line, .. } => (format!("stdio:{line}"), true),
        }
    }

    /// Whether the server ends with this program.
    pub(crate) const fn is_child(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    /// Connects.
    pub(crate) async fn connect(
        &self,
        builder: TaskClientBuilder,
        envs: &[(String, String)],
        screen: &Screen,
    ) -> Result<TaskClient, CommandError> {
        let builder = builder.name("mcp-tasks", env!("CARGO_PKG_VERSION"));
        let client = match self {
            Self::Http(url) => {
                let builder = match token()? {
                    Some(token) => builder.bearer(token),
                    None => builder,
                };
                builder.connect_http(url.as_str()).await?
            }
            Self::Command { words, .. } => {
                let mut command = Command::new(&words[0]);
                // The token is for servers that are reached over a network.
                command.args(&words[1..]).env_remove(TOKEN).envs(envs.iter().cloned());
                // Ctrl-C is for this program alone: a server that it reached would end before its task is cancelled.
                #[cfg(unix)]
                command.process_group(0);
                let (writer, read) = log(screen)?;
                command.stderr(writer);
                let mut connecting = pin!(builder.connect_timeout(START_TIMEOUT).connect_command(command));
                let connected = match tokio::time::timeout(START_HINT_AFTER, connecting.as_mut()).await {
                    Ok(connected) => connected,
                    Err(_) => {
                        screen.hint(&format!(
                            "no MCP message has come from the server's standard output yet; it has {START_TIMEOUT:?} to start"
                        ));
                        if let Some(hint) = transport_hint(envs) {
                            screen.hint(hint);
                        }
                        connecting.await
                    }
                };
                match connected {
                    Ok(client) => client,
                    Err(error) => {
                        // A server that did not start has said why, and that comes before the words for it here.
                        let _ = tokio::time::timeout(LOG_TIMEOUT, read).await;
                        let is_silent =
                            matches!(&error, ClientError::Transport { source, .. } if source.is_silent_child);
                        let hint = transport_hint(envs).filter(|_| is_silent);
                        let stop = CommandError::from(error);
                        return Err(match hint {
                            Some(hint) => stop.with(|report| report.note(hint)),
                            None => stop,
                        });
                    }
                }
            }
        };
        Ok(client)
    }
}

/// The URL without a user, a password, and what may be a token: its query and its fragment.
fn without_secrets(mut url: Url) -> Url {
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// What helps a server that may speak MCP elsewhere than on its standard streams, unless it was done.
fn transport_hint(envs: &[(String, String)]) -> Option<&'static str> {
    let is_set = envs.iter().any(|(name, _)| name == TRANSPORT) || std::env::var_os(TRANSPORT).is_some();
    (!is_set).then_some("A server made with mcp-tasks speaks MCP there with -e MCP_TASKS_TRANSPORT=stdio")
}

fn token() -> Result<Option<String>, CommandError> {
    let Ok(token) = std::env::var(TOKEN) else {
        return match std::env::var_os(TOKEN) {
            Some(_) => Err(CommandError::usage(format!("{TOKEN} is no text"))),
            None => Ok(None),
        };
    };
    // Files that tokens come from end with a line end.
    let token = token.trim();
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(CommandError::usage(format!("{TOKEN} has characters that no token has")));
    }
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

/// Where a child writes its log: through here, since it may write anything. What comes with it resolves, by an error, once
/// all of it is on the screen.
fn log(screen: &Screen) -> Result<(std::io::PipeWriter, oneshot::Receiver<()>), CommandError> {
    let (reader, writer) =
        std::io::pipe().map_err(|error| CommandError::local(format!("the server's log has no way here: {error}")))?;
    let screen = screen.clone();
    let (all_read, read) = oneshot::channel();
    std::thread::spawn(move || {
        let _all_read: oneshot::Sender<()> = all_read;
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.by_ref().take(MAX_LOG_LINE).read_until(b'\n', &mut line) {
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
        let url = Url::parse("http://h:1/mcp").unwrap();
        assert_eq!(parse("http://h:1/mcp"), Some(Server::Http(url)));
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

    /// A server that serves HTTP, for lack of another setting, does not keep the user waiting for ever.
    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_given_up_with_words_for_what_to_do() {
        let screen = Screen::new(crate::args::Format::Text, true);
        let start = async |envs: &[(String, String)]| {
            let server = Server::parse("stdio:sleep 1000").unwrap();
            let began = tokio::time::Instant::now();
            let stop = server.connect(TaskClient::builder(), envs, &screen).await.unwrap_err();
            assert!(began.elapsed() >= START_TIMEOUT, "{:?}", began.elapsed());
            format!("{stop:?}")
        };
        let words = start(&[]).await;
        for part in [
            "within 60s",
            "the standard output of sleep",
            "-e MCP_TASKS_TRANSPORT=stdio",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let words = start(&[(TRANSPORT.to_owned(), "stdio".to_owned())]).await;
        assert!(words.contains("within 60s") && !words.contains("-e MCP"), "{words}");
    }

    #[test]
    fn a_secret_in_a_url_is_not_saved() {
        let saved = |url: &str| Server::parse(url).unwrap().to_saved();
        assert_eq!(saved("http://h:1/mcp"), ("http://h:1/mcp".to_owned(), true));
        assert_eq!(saved("http://u:p@h:1/mcp?key=k"), ("http://h:1/mcp".to_owned(), false));
    }
}
