//! The bucket: found or made, and fit for tasks.

use std::sync::Weak;

use async_nats::Client;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind, RequestError, RequestErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use mcp_tasks_core::StoreError;

use super::connection::Connection;
use super::error::{jetstream_cause, nobody_answers, of_request, refused, unavailable};

/// No limit, in the settings of a stream.
const UNLIMITED: i64 = -1;

/// A bucket that was found.
pub(super) struct Bucket {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) stream: Stream,
    /// In front of a key, in the subject of a stored message.
    pub(super) subject: String,
    /// In front of a key, in the subject that is published to.
    publish: String,
    /// Whether whoever answers a direct read has the newest state: there is only one server that can.
    pub(super) direct: bool,
    alive: Option<Weak<()>>,
}

impl Bucket {
    /// Finds the bucket, or makes it. `reached` tells whether it has been there before.
    pub(super) async fn find(
        connection: &Connection,
        client: Client,
        alive: Option<Weak<()>>,
        reached: bool,
    ) -> Result<Self, StoreError> {
        let options = connection.options();
        let mut context = match &options.domain {
            Some(domain) => jetstream::with_domain(client.clone(), domain),
            None => jetstream::new(client.clone()),
        };
        context.set_timeout(options.timeout);
        let name = connection.bucket_name();
        let stream_name = format!("KV_{name}");
        let stream = match context.get_stream(&stream_name).await {
            Ok(stream) => stream,
            Err(error) if is_absent(&error) => make(connection, &context, stream_name).await?,
            Err(error) => return Err(of_looking(error, &client, options.domain.as_deref(), reached)),
        };
        let config = &stream.cached_info().config;
        let subject = format!("$KV.{name}.");
        check(config, &subject, options.replicas)
            .map_err(|reason| refused(format!("the NATS bucket {name} {reason}")))?;
        let publish = match &options.domain {
            Some(domain) => format!("$JS.{domain}.API.{subject}"),
            None => subject.clone(),
        };
        Ok(Self {
            direct: config.allow_direct && config.num_replicas <= 1,
            client,
            context,
            stream,
            subject,
            publish,
            alive,
        })
    }

    /// Whether the driver's tasks run still.
    pub(super) fn is_alive(&self) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.strong_count() > 0)
    }

    /// The subject under which a key is stored.
    pub(super) fn stored(&self, key: &str) -> String {
        format!("{}{key}", self.subject)
    }

    /// The subject to which a key is published.
    pub(super) fn published(&self, key: &str) -> String {
        format!("{}{key}", self.publish)
    }

    /// The bucket as it is now.
    pub(super) async fn info(&self) -> Result<Info, StoreError> {
        self.stream.get_info().await.map_err(of_request)
    }
}

fn is_absent(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn of_looking(error: GetStreamError, client: &Client, domain: Option<&str>, reached: bool) -> StoreError {
    if let GetStreamErrorKind::JetStream(error) = error.kind() {
        return super::error::of_jetstream(&error);
    }
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<RequestError>());
    let nobody = source.is_some_and(|source| source.kind() == RequestErrorKind::NoResponders);
    match (nobody, reached, domain) {
        (false, ..) => of_request(error),
        (true, true, _) => nobody_answers(error),
        // What lies between may come up later, as when a leaf is started before its hub.
        (true, false, Some(domain)) => unavailable(
            format!("nobody answers for the JetStream domain `{domain}`: it is not there, or out of reach at present"),
            error,
        ),
        (true, false, None) if client.server_info().jetstream => refused(
            "JetStream is not enabled for this account of the NATS server, or only in a domain, to be named as `domain`",
        ),
        (true, false, None) => {
            refused("the NATS server runs without JetStream; start it with `--jetstream` and a `--store_dir`")
        }
    }
}

/// Makes the bucket, with the settings every client of key-value buckets expects. The driver's function for it asks about the
/// account first, which servers before 2.10 do not answer in a form that it reads, and which is one more right.
async fn make(connection: &Connection, context: &Context, name: String) -> Result<Stream, StoreError> {
    let options = connection.options();
    let config = Config {
        subjects: vec![format!("$KV.{}.>", connection.bucket_name())],
        description: Some("Tasks of the Model Context Protocol".to_owned()),
        max_messages_per_subject: 1,
        max_messages: UNLIMITED,
        max_bytes: options.max_bytes.unwrap_or(UNLIMITED),
        max_message_size: -1,
        max_consumers: -1,
        storage: StorageType::File,
        num_replicas: options.replicas.unwrap_or(1),
        discard: DiscardPolicy::New,
        allow_rollup: true,
        allow_direct: true,
        deny_delete: true,
        name: name.clone(),
        ..Config::default()
    };
    let made = context.create_stream(config).await;
    let cause = |error| jetstream_cause(error).map(jetstream::Error::error_code);
    match made {
        Ok(stream) => {
            tracing::info!(bucket = connection.bucket_name(), "made a NATS bucket for tasks");
            Ok(stream)
        }
        // Another node made it at the same moment, or it is there in a form of the operator's.
        Err(error) if code_of(&error).or_else(|| cause(&error)) == Some(ErrorCode::STREAM_NAME_EXIST) => {
            context.get_stream(&name).await.map_err(of_request)
        }
        Err(error) => Err(of_making(error)),
    }
}

type CreateStreamError = jetstream::context::CreateStreamError;

fn code_of(error: &CreateStreamError) -> Option<ErrorCode> {
    match error.kind() {
        jetstream::context::CreateStreamErrorKind::JetStream(error) => Some(error.error_code()),
        _ => None,
    }
}

fn of_making(error: CreateStreamError) -> StoreError {
    match error.kind() {
        jetstream::context::CreateStreamErrorKind::JetStream(error) => super::error::of_jetstream(&error),
        _ => of_request(error),
    }
}

/// Whether tasks can be kept in a bucket with these settings. What loses them is refused, what an operator may have meant
/// is warned of.
fn check(config: &Config, subject: &str, replicas: Option<usize>) -> Result<(), String> {
    let drops_old = config.discard == DiscardPolicy::Old && (config.max_bytes > 0 || config.max_messages > 0);
    let unfit = [
        (
            !config.subjects.iter().any(|taken| *taken == format!("{subject}>")),
            "is no key-value bucket of its own: it does not take its subjects",
        ),
        (
            config.mirror.is_some(),
            "is a mirror, which lags behind what it mirrors: use the original, or its `domain`",
        ),
        (
            !config.max_age.is_zero(),
            "removes what is older than its `max_age`, and tasks with it: take the limit away (`nats stream edit --max-age=0`) \
             or use another key prefix",
        ),
        (
            drops_old,
            "throws old tasks away when it is full: let it refuse new ones (`nats stream edit --discard=new`)",
        ),
        (
            config.retention != RetentionPolicy::Limits,
            "removes messages that were read: its retention has to be `limits`",
        ),
        (config.no_ack, "does not confirm what is written: take `no_ack` away"),
        (config.sealed, "is sealed: nothing can be written to it"),
        (
            config.deny_purge,
            "does not let expired tasks be removed: take `deny_purge` away",
        ),
        (!config.allow_rollup, "does not let tasks be deleted: allow roll-ups"),
    ];
    if let Some((_, reason)) = unfit.iter().find(|(is_so, _)| *is_so) {
        return Err((*reason).to_owned());
    }
    let bucket = config.name.as_str();
    if config.storage == StorageType::Memory {
        tracing::warn!(
            bucket,
            "the NATS bucket is kept in memory: tasks are lost when its servers restart"
        );
    }
    if config.max_messages_per_subject != 1 {
        tracing::warn!(
            bucket,
            history = config.max_messages_per_subject,
            "the NATS bucket keeps earlier versions of each task, which nobody reads and which take space"
        );
    }
    if let Some(wanted) = replicas
        && wanted != config.num_replicas
    {
        tracing::warn!(
            bucket,
            wanted,
            found = config.num_replicas,
            "the NATS bucket has another number of replicas than configured; it is left as it is"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_nats::jetstream::stream::Source;

    use super::*;

    fn fit() -> Config {
        Config {
            name: "KV_t".to_owned(),
            subjects: vec!["$KV.t.>".to_owned()],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            num_replicas: 1,
            ..Config::default()
        }
    }

    /// What makes a bucket unfit, and a word of what is said of it.
    type Spoil = (fn(&mut Config), &'static str);

    #[test]
    fn settings_that_lose_tasks_are_refused() {
        assert_eq!(check(&fit(), "$KV.t.", None), Ok(()));
        let spoil: [Spoil; 9] = [
            (
                |config| config.subjects = vec!["orders.>".to_owned()],
                "no key-value bucket",
            ),
            (|config| config.mirror = Some(Source::default()), "mirror"),
            (|config| config.max_age = Duration::from_secs(1), "max_age"),
            (
                |config| {
                    config.discard = DiscardPolicy::Old;
                    config.max_bytes = 1;
                },
                "discard=new",
            ),
            (|config| config.retention = RetentionPolicy::WorkQueue, "limits"),
            (|config| config.no_ack = true, "no_ack"),
            (|config| config.sealed = true, "sealed"),
            (|config| config.deny_purge = true, "deny_purge"),
            (|config| config.allow_rollup = false, "roll-ups"),
        ];
        for (spoil, words) in spoil {
            let mut config = fit();
            spoil(&mut config);
            let reason = check(&config, "$KV.t.", None).unwrap_err();
            assert!(reason.contains(words), "{reason}");
        }
    }

    #[test]
    fn settings_that_an_operator_may_have_meant_are_used() {
        let mut config = fit();
        config.storage = StorageType::Memory;
        config.max_messages_per_subject = 5;
        config.num_replicas = 3;
        config.max_bytes = 1_000_000;
        assert_eq!(check(&config, "$KV.t.", Some(1)), Ok(()));
    }
}
