//! The command `informer-apiserver`, run as a user runs it.
//!
//! They answer: does it print its address, can another shell break it, and does it end cleanly on a signal?
#![cfg(all(unix, feature = "cli"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_informer-apiserver");

pub(crate) struct Running {
    child: Child,
    pub(crate) addr: SocketAddr,
    admin_port: String,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(Command::new(PROGRAM).args(["--admin-port", "0"]).args(arguments))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.next().unwrap();
        let addr = url.rsplit("//").next().unwrap().parse().unwrap();
        let admin_port = lines.next().unwrap().rsplit(':').next().unwrap().to_owned();
        Self { child, addr, admin_port }
    }

    fn fault(&self, arguments: &[&str]) -> Output {
        let port = ["fault", "--admin-port", &self.admin_port];
        Command::new(PROGRAM).args(port).args(arguments).output().unwrap()
    }

    fn output(&self, arguments: &[&str]) -> String {
        let output = self.fault(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
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

#[test]
fn the_command_breaks_a_running_server_from_another_shell() {
    let running = Running::start(&[]);
    assert_eq!(running.output(&["list"]), "no standing faults\n");
    let frozen = "{\"fault\":\"freeze-watches\",\"resource\":\"pods\"}\n";
    assert_eq!(running.output(&["freeze-watches", "pods"]), frozen);
    assert_eq!(running.output(&["compact"]), frozen);
    assert_eq!(
        running.output(&["too-many-requests-next", "3", "--retry-after", "2", "pods"]).lines().count(),
        2
    );
    assert_eq!(running.output(&["clear"]), "no standing faults\n");
    assert!(running.output(&["counts"]).contains(r#""fault":"freeze-watches""#));
    let typo = running.fault(&["freeze-watches", "pots"]);
    assert!(String::from_utf8_lossy(&typo.stderr).contains("did you mean pods?"), "{typo:?}");
    assert!(!running.fault(&["restore-backup"]).status.success());
    assert!(running.ended_by("-TERM"), "SIGTERM is a clean end");
}

#[test]
fn the_command_says_what_to_do_if_no_admin_port_answers() {
    let output = Command::new(PROGRAM).args(["fault", "--admin-port", "1", "list"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("start the server with --admin-port"));
}
