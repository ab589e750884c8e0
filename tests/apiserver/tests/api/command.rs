//! The command `informer-apiserver`, run as a user runs it.
//!
//! They answer: does it print its address, and does it end cleanly on a signal?
#![cfg(all(unix, feature = "cli"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_informer-apiserver");

pub(crate) struct Running {
    child: Child,
    pub(crate) addr: SocketAddr,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let addr = url.trim().rsplit("//").next().unwrap().parse().unwrap();
        Self { child, addr }
    }

    /// The process of the server.
    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ended_by(mut self, signal: &str) -> bool {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a test that has failed gets here before the program has ended.
        let _ended = self.child.kill();
    }
}

#[test]
fn the_command_prints_its_address_and_writes_a_kubeconfig() {
    let directory = std::env::temp_dir().join(format!("informer-apiserver-{}", std::process::id()));
    let file = directory.join("dev.kubeconfig");
    std::fs::create_dir_all(&directory).unwrap();
    let running = Running::start(&["--kubeconfig-out", file.to_str().unwrap()]);
    TcpStream::connect(running.addr).unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().contains(&running.addr.to_string()));
    assert!(running.ended_by("-INT"), "Ctrl-C is a clean end");
    assert!(Running::start(&[]).ended_by("-TERM"), "SIGTERM is a clean end");
    std::fs::remove_dir_all(&directory).unwrap();
}

/// One request; the answer, as far as it came.
pub(crate) fn ask(addr: SocketAddr, line: &str, body: &str) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(addr)?;
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}
