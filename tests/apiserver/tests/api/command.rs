//! The command `informer-apiserver`, run as a user runs it.
//!
//! They answer: does it print its address, can another shell break it, and does it end cleanly on a signal?
#![cfg(all(unix, feature = "cli"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
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

/// The number in a config map; none if it is not there.
fn number_in(answer: &str) -> Option<u64> {
    let (_, rest) = answer.split_once(r#""n":""#)?;
    rest.split('"').next()?.parse().ok()
}

/// Writes a few config maps again and again until the server is gone; the numbers acknowledged last, and tried last.
fn rewrite_until_killed(addr: SocketAddr, name: &str, from: u64) -> (u64, u64) {
    let path = format!("/api/v1/namespaces/default/configmaps/{name}");
    let mut acknowledged = from;
    for number in from + 1.. {
        let padding = "x".repeat(2_000);
        let body =
            format!(r#"{{"metadata": {{"name": "{name}"}}, "data": {{"n": "{number}", "p": "{padding}"}}}}"#);
        let put = ask(addr, &format!("PUT {path}"), &body);
        let made = match &put {
            Ok(answer) if answer.starts_with("HTTP/1.1 404") => {
                ask(addr, "POST /api/v1/namespaces/default/configmaps", &body)
            }
            _ => put,
        };
        match made {
            Ok(answer) if answer.starts_with("HTTP/1.1 20") => acknowledged = number,
            _ => return (acknowledged, number),
        }
    }
    unreachable!("numbers do not end")
}

#[test]
fn kill_9_while_the_log_is_rewritten_loses_nothing_and_the_directory_stays_small() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", directory.path().to_str().unwrap(), "--log-slack", "20000"];
    let mut known = vec![(0, 0); 4];
    for _ in 0..6 {
        let running = Running::start(&arguments);
        for (writer, (acknowledged, tried)) in known.iter().enumerate() {
            let path = format!("GET /api/v1/namespaces/default/configmaps/m{writer}");
            let found = number_in(&ask(running.addr, &path, "").unwrap()).unwrap_or(0);
            assert!((*acknowledged..=*tried).contains(&found), "{acknowledged} <= {found} <= {tried}");
        }
        let (addr, begin) = (running.addr, known.clone());
        let writers: Vec<_> = begin
            .into_iter()
            .enumerate()
            .map(|(writer, (_, tried))| {
                std::thread::spawn(move || rewrite_until_killed(addr, &format!("m{writer}"), tried))
            })
            .collect();
        let generation = || newest_snapshot(directory.path());
        let first = generation();
        while generation() < first + 3 || size(directory.path()) > 500_000 {}
        assert!(!running.ended_by("-KILL"));
        known = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    }
}

/// The number of the newest snapshot in a directory.
fn newest_snapshot(directory: &Path) -> u64 {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix("snapshot.")?.parse().ok();
    names.filter_map(number).max().unwrap_or(0)
}

/// How many bytes the files of a directory have, without those that are removed meanwhile.
fn size(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

#[test]
fn a_write_that_fails_on_the_disk_is_refused_and_nothing_acknowledged_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    // No file may grow beyond 64 KiB; the signal that would end the program is ignored, so that its writes fail. Its
    // messages go nowhere: the output of this test may itself be a longer file.
    let limited =
        format!("trap '' XFSZ; ulimit -f 64; exec {PROGRAM} --admin-port 0 --data-dir {path} 2>/dev/null");
    let running = Running::of(Command::new("bash").args(["-c", &limited]));
    let (acknowledged, tried) = rewrite_until_killed(running.addr, "m0", 0);
    let get = "GET /api/v1/namespaces/default/configmaps/m0";
    assert!(acknowledged > 3 && tried == acknowledged + 1, "{acknowledged} of {tried}");
    let refused = ask(running.addr, "POST /api/v1/namespaces", r#"{"metadata": {"name": "a"}}"#).unwrap();
    assert!(
        refused.starts_with("HTTP/1.1 500") && refused.contains("the log cannot be written"),
        "{refused}"
    );
    assert!(ask(running.addr, get, "").unwrap().starts_with("HTTP/1.1 200"), "reads go on");
    let ready = ask(running.addr, "GET /readyz", "").unwrap();
    assert!(ready.starts_with("HTTP/1.1 500") && ready.contains("[-]etcd failed"), "{ready}");
    assert!(running.ended_by("-TERM"));
    let again = Running::start(&["--data-dir", path]);
    let found = number_in(&ask(again.addr, get, "").unwrap()).unwrap();
    assert!((acknowledged..=tried).contains(&found), "{found} is not {acknowledged}");
    assert!(again.ended_by("-TERM"));
}

#[test]
fn a_directory_in_use_is_refused_with_a_clear_message() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", directory.path().to_str().unwrap()];
    let running = Running::start(&arguments);
    let second = Command::new(PROGRAM).args(arguments).output().unwrap();
    assert!(!second.status.success());
    let words = String::from_utf8(second.stderr).unwrap();
    assert!(words.contains("another server has it"), "{words}");
    assert!(running.ended_by("-TERM"));
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
