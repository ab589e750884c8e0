//! The command `informer-apiserver`, run as a user runs it.
//!
//! They answer: does it say where it is, can another shell break it, and does it end cleanly when it is asked to?
#![cfg(all(unix, feature = "cli"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_informer-apiserver");

struct Running {
    child: Child,
    addr: SocketAddr,
    admin_port: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["--admin-port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
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

    fn told(&self, arguments: &[&str]) -> String {
        let output = self.fault(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn ended_by(mut self, signal: &str) -> bool {
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
fn the_command_says_where_it_is_and_writes_a_kubeconfig() {
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
fn ask(addr: SocketAddr, line: &str, body: &str) -> std::io::Result<String> {
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
fn what_was_acknowledged_is_there_after_kill_9_in_the_middle_of_writes() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", directory.path().to_str().unwrap()];
    let maps = "/api/v1/namespaces/default/configmaps";
    let running = Running::start(&arguments);
    let addr = running.addr;
    let writer = std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        for number in 0.. {
            let name = format!("m{number}");
            let body = format!(r#"{{"metadata": {{"name": "{name}"}}}}"#);
            match ask(addr, &format!("POST {maps}"), &body) {
                Ok(answer) if answer.starts_with("HTTP/1.1 201") => acknowledged.push(name),
                _ => break,
            }
        }
        acknowledged
    });
    while !ask(addr, &format!("GET {maps}/m20"), "").unwrap().starts_with("HTTP/1.1 200") {}
    assert!(!running.ended_by("-KILL"));
    let acknowledged = writer.join().unwrap();
    let again = Running::start(&arguments);
    let list = ask(again.addr, &format!("GET {maps}"), "").unwrap();
    for name in acknowledged {
        assert!(list.contains(&format!(r#""name":"{name}""#)), "{name} was acknowledged");
    }
    assert!(again.ended_by("-TERM"));
}

#[test]
fn the_command_breaks_a_running_server_from_another_shell() {
    let running = Running::start(&[]);
    assert_eq!(running.told(&["list"]), "no standing faults\n");
    let frozen = "{\"fault\":\"freeze-watches\",\"resource\":\"pods\"}\n";
    assert_eq!(running.told(&["freeze-watches", "pods"]), frozen);
    assert_eq!(running.told(&["compact"]), frozen);
    assert_eq!(
        running.told(&["too-many-requests-next", "3", "--retry-after", "2", "pods"]).lines().count(),
        2
    );
    assert_eq!(running.told(&["clear"]), "no standing faults\n");
    assert!(!running.fault(&["restore-backup"]).status.success());
    assert!(running.ended_by("-TERM"), "SIGTERM is a clean end");
}

#[test]
fn the_command_says_what_to_do_where_no_admin_port_answers() {
    let output = Command::new(PROGRAM).args(["fault", "--admin-port", "1", "list"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("start the server with --admin-port"));
}
