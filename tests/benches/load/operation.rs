//! What a client does over and over: one request, or the few of a task's life.

use anyhow::{Context as _, bail};
use mcp_tasks_tests::rmcp_server::QUESTION;

use crate::http::Connection;
use crate::options::Role;
use crate::request::Template;
use crate::server::{Answers, Server};

/// How often a task is looked at that ought to be done; bounds a wait that would never end.
const LOOKS: u32 = 100_000;

/// How far apart clients start that have neighbouring ports: a prime, so that no size of a list is met by it.
const STRIDE: usize = 7919;

const COMPLETED: &[u8] = br#""status":"completed""#;
const WORKING: &[u8] = br#""status":"working""#;
const ASKS: &[u8] = br#""status":"input_required""#;
const TASK: &[u8] = br#""resultType":"task""#;
const COMPLETE: &[u8] = br#""resultType":"complete""#;
const DONE: &[u8] = br#""text":"done""#;

/// The requests of every operation, for one server. The limit has a path for each, as it does not look into them.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) call: Template,
    pub(crate) get_working: Template,
    pub(crate) get_completed: Template,
    pub(crate) call_question: Template,
    pub(crate) get_asking: Template,
    pub(crate) answer: Template,
    pub(crate) get_answered: Template,
    pub(crate) call_undeclared: Template,
    pub(crate) call_slow: Template,
    pub(crate) listen: Template,
}

impl Requests {
    pub(crate) fn new(role: Role, authority: &str) -> Self {
        let path = |name: &str| match role {
            Role::Limit => format!("/mcp/{name}"),
            Role::Ours | Role::Rmcp => "/mcp".to_owned(),
        };
        Self {
            call: Template::call(authority, &path("call"), "deferred"),
            get_working: Template::get(authority, &path("get_working")),
            get_completed: Template::get(authority, &path("get_completed")),
            call_question: Template::call(authority, &path("call_question"), "question"),
            get_asking: Template::get(authority, &path("get_asking")),
            answer: Template::update(authority, &path("answer"), QUESTION),
            get_answered: Template::get(authority, &path("get_answered")),
            call_undeclared: Template::undeclared_call(authority, &path("call_undeclared"), "deferred"),
            call_slow: Template::call(authority, &path("call_slow"), "slow"),
            listen: Template::listen(authority, &path("listen")),
        }
    }
}

/// A prepared request, and what its answer has to say.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) request: Vec<u8>,
    pub(crate) says: &'static [u8],
}

/// What a client does.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// One request out of some, in turn.
    One(Vec<Prepared>),
    /// A call that creates a task.
    Create,
    /// A call, and a look at its task, which is done: two requests.
    Call,
    /// A call, a look at its question, the answer, and a look at the result: four requests.
    Question,
    /// The first half of that: a task that is parked.
    Park,
}

impl Operation {
    /// `tasks/get` of a task that works.
    pub(crate) fn poll_working(server: &Server, id: &str) -> Self {
        Self::one(&server.requests.get_working, id, WORKING)
    }

    /// `tasks/get` of a task that is completed.
    pub(crate) fn poll_completed(server: &Server, id: &str) -> Self {
        Self::one(&server.requests.get_completed, id, COMPLETED)
    }

    /// `tasks/get` of these parked tasks, one after the other.
    pub(crate) fn poll_parked<'a>(server: &Server, ids: impl IntoIterator<Item = &'a str>) -> Self {
        let prepared = |id| Prepared {
            request: server.requests.get_asking.prepare(id),
            says: ASKS,
        };
        Self::One(ids.into_iter().map(prepared).collect())
    }

    /// The call of a client that does not know tasks.
    pub(crate) fn synchronous(server: &Server) -> Self {
        Self::one(&server.requests.call_undeclared, "", DONE)
    }

    fn one(template: &Template, id: &str, says: &'static [u8]) -> Self {
        Self::One(vec![Prepared {
            request: template.prepare(id),
            says,
        }])
    }
}

/// One client: a connection, and the buffers it uses again.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    pub(crate) connection: Connection,
    requests: &'a Requests,
    request: Vec<u8>,
    id: String,
    turn: usize,
    /// How many requests it has sent.
    pub(crate) sent: u64,
}

impl<'a> Client<'a> {
    pub(crate) async fn open(server: &'a Server) -> anyhow::Result<Self> {
        let connection = Connection::open(server.address).await?;
        Ok(Self {
            // Clients that ask for the same tasks in turn start at different ones, or each would find what the one before it
            // has just brought into the cache.
            turn: usize::from(connection.port()?) * STRIDE,
            connection,
            requests: &server.requests,
            request: Vec::new(),
            id: String::new(),
            sent: 0,
        })
    }

    /// Does it once.
    pub(crate) async fn run(&mut self, operation: &Operation) -> anyhow::Result<()> {
        let requests = self.requests;
        match operation {
            Operation::One(prepared) => {
                self.turn = (self.turn + 1) % prepared.len();
                let one = &prepared[self.turn];
                self.sent += 1;
                expect(self.connection.exchange(&one.request).await?, one.says)
            }
            Operation::Create => self.create(&requests.call).await,
            Operation::Call => {
                self.create(&requests.call).await?;
                self.reach(&requests.get_completed, COMPLETED).await
            }
            Operation::Park => {
                self.create(&requests.call_question).await?;
                self.reach(&requests.get_asking, ASKS).await
            }
            Operation::Question => {
                self.create(&requests.call_question).await?;
                self.reach(&requests.get_asking, ASKS).await?;
                self.step(&requests.answer, COMPLETE).await?;
                self.reach(&requests.get_answered, COMPLETED).await
            }
        }
    }

    /// The task that was created last.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Calls a tool and keeps the id of its task.
    pub(crate) async fn create(&mut self, call: &Template) -> anyhow::Result<()> {
        call.render(&self.id, &mut self.request);
        self.sent += 1;
        let answer = self.connection.exchange(&self.request).await?;
        expect(answer, TASK)?;
        let id = task_id(answer).context("a task without an id")?;
        self.id.clear();
        self.id.push_str(id);
        Ok(())
    }

    /// Looks at the task until it is so far.
    pub(crate) async fn reach(&mut self, get: &Template, status: &[u8]) -> anyhow::Result<()> {
        get.render(&self.id, &mut self.request);
        for _ in 0..LOOKS {
            self.sent += 1;
            let answer = self.connection.exchange(&self.request).await?;
            if memchr::memmem::find(answer, status).is_some() {
                return Ok(());
            }
            expect(answer, WORKING)?;
        }
        bail!("a task does not become {}", String::from_utf8_lossy(status))
    }

    /// One request on the task.
    pub(crate) async fn step(&mut self, template: &Template, says: &[u8]) -> anyhow::Result<()> {
        template.render(&self.id, &mut self.request);
        self.sent += 1;
        expect(self.connection.exchange(&self.request).await?, says)
    }

    async fn body(&mut self, template: &Template) -> anyhow::Result<String> {
        template.render(&self.id, &mut self.request);
        let answer = self.connection.exchange(&self.request).await?;
        Ok(String::from_utf8(answer.to_vec())?)
    }
}

/// Errors must never be counted as speed.
fn expect(answer: &[u8], says: &[u8]) -> anyhow::Result<()> {
    if memchr::memmem::find(answer, says).is_none() {
        let (says, answer) = (String::from_utf8_lossy(says), String::from_utf8_lossy(answer));
        bail!("an answer does not say {says}: {answer}");
    }
    Ok(())
}

fn task_id(answer: &[u8]) -> Option<&str> {
    const MEMBER: &[u8] = br#""taskId":""#;
    let start = memchr::memmem::find(answer, MEMBER)? + MEMBER.len();
    let length = memchr::memchr(b'"', &answer[start..])?;
    std::str::from_utf8(&answer[start..start + length]).ok()
}

/// A task that works and one that is completed, for polls.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    pub(crate) working: String,
    pub(crate) completed: String,
}

impl Tasks {
    pub(crate) async fn create(server: &Server) -> anyhow::Result<Self> {
        let requests = &server.requests;
        let mut client = Client::open(server).await?;
        client.create(&requests.call_slow).await?;
        let working = client.id().to_owned();
        client.create(&requests.call).await?;
        client.reach(&requests.get_completed, COMPLETED).await?;
        let completed = client.id().to_owned();
        Ok(Self { working, completed })
    }
}

/// What our server answers to every request, so that the limit can answer the same.
pub(crate) async fn answers(server: &Server) -> anyhow::Result<Answers> {
    let requests = &server.requests;
    let mut client = Client::open(server).await?;
    let mut answers = Answers::new();
    let mut keep = |name: &str, body: String| drop(answers.insert(name.to_owned(), body));

    keep("call_undeclared", client.body(&requests.call_undeclared).await?);
    keep("call", client.body(&requests.call).await?);
    client.create(&requests.call).await?;
    client.reach(&requests.get_completed, COMPLETED).await?;
    keep("get_completed", client.body(&requests.get_completed).await?);

    keep("call_slow", client.body(&requests.call_slow).await?);
    client.create(&requests.call_slow).await?;
    keep("get_working", client.body(&requests.get_working).await?);

    keep("call_question", client.body(&requests.call_question).await?);
    client.create(&requests.call_question).await?;
    client.reach(&requests.get_asking, ASKS).await?;
    keep("get_asking", client.body(&requests.get_asking).await?);
    keep("answer", client.body(&requests.answer).await?);
    client.reach(&requests.get_answered, COMPLETED).await?;
    keep("get_answered", client.body(&requests.get_answered).await?);
    Ok(answers)
}
