//! Operators in processes of their own, which can be killed.
//!
//! Answers "how does a test run an operator that ends at any moment?" The process is this test program again: of all its tests
//! it runs one, which is an operator if its environment says so, and does nothing otherwise. Invariants:
//! 1. The process ends with the test that started it, however that ends: its standard input is closed then.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use actix_informer::client::{Client, Config};
use actix_informer::prelude::Runtime;

use crate::server::Server;
use crate::website_operator::WebsiteOperator;

/// The file with the kubeconfig of an operator's process.
const KUBECONFIG: &str = "INFORMER_TEST_OPERATOR_KUBECONFIG";

/// A running operator.
pub(crate) struct Process {
    child: Child,
    _kubeconfig: tempfile::NamedTempFile,
}

impl Process {
    /// Starts the website operator against this server.
    pub(crate) fn start(server: &Server) -> Self {
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), server.kubeconfig()).expect("a file that can be written");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["website_process::the_operator_of_another_process", "--exact", "--nocapture"])
            .env(KUBECONFIG, kubeconfig.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self { child: child.expect("one more process"), _kubeconfig: kubeconfig }
    }

    /// Ends it by SIGKILL, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop((self.child.kill(), self.child.wait()));
    }
}

#[test]
fn the_operator_of_another_process() {
    let Ok(path) = std::env::var(KUBECONFIG) else { return };
    let text = std::fs::read_to_string(path).expect("the kubeconfig of the test");
    let config = Config::from_kubeconfig_text(&text, None).expect("the server's own kubeconfig is valid");
    let client = Client::new(config).expect("a client");
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let threads = threads.expect("a runtime");
    let _within = threads.enter();
    let runtime = Runtime::threads().start().expect("threads");
    // As a container that is started again in its pod: it need not wait for the lease of the one before.
    let operator =
        WebsiteOperator::new(&client, &runtime, Some("website-operator-0")).expect("valid settings");
    let _running = operator.builder.start().expect("it starts");
    // Returns when the test that started this process has ended.
    drop(std::io::stdin().read_to_end(&mut Vec::new()));
}
