//! A terminal with a user in front of it.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_tasks_tests::patience::{LIMIT, until};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

const SIZE: PtySize = PtySize {
    rows: 50,
    cols: 140,
    pixel_width: 0,
    pixel_height: 0,
};

fn size(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).expect("a terminal has a size")
}

/// A program in a pseudo-terminal; it is killed when this is dropped.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
    // Closing it would hang the program up.
    _master: Box<dyn MasterPty + Send>,
}

/// What came to the screen.
struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    pub(crate) fn open(program: &str, arguments: &[&str], env: &[(String, String)], home: &Path) -> Self {
        let pty = native_pty_system().openpty(SIZE).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        for (name, value) in env {
            command.env(name, value);
        }
        command.cwd(home);
        let child = pty.slave.spawn_command(command).unwrap();
        // The program's is the only one left, so that the end of it is seen.
        drop(pty.slave);
        let seen = Arc::new(Mutex::new(Seen {
            screen: vt100::Parser::new(size(SIZE.rows), size(SIZE.cols), 1000),
            bytes: Vec::new(),
        }));
        let mut reader = pty.master.try_clone_reader().unwrap();
        let into = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                let mut seen = into.lock().unwrap();
                seen.screen.process(&buffer[..read]);
                seen.bytes.extend(&buffer[..read]);
            }
        });
        Self {
            child,
            keyboard: pty.master.take_writer().unwrap(),
            seen,
            _master: pty.master,
        }
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Everything that was written to it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.lock().unwrap().bytes.clone()
    }

    /// Whether these words are on the screen.
    pub(crate) fn shows(&self, words: &str) -> bool {
        self.screen().contains(words)
    }

    /// Waits until these words are on the screen.
    pub(crate) async fn sees(&self, words: &str) {
        let end = Instant::now() + LIMIT;
        while !self.shows(words) {
            assert!(Instant::now() < end, "never shown: {words:?}; but\n{}", self.screen());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, words: &str) {
        self.press(words);
        self.press("\r");
    }

    /// Waits for the program to end: its exit code.
    pub(crate) async fn exit(&mut self) -> i32 {
        let Self { child, .. } = self;
        let status = until("the program ends", async || child.try_wait().unwrap()).await;
        status.exit_code() as i32
    }
}
