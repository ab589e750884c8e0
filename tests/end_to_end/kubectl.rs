//! kubectl against the server of a scenario: what it prints, and which requests it sends.
//!
//! Answers "what does kubectl make of this?" It reads the server's kubeconfig and keeps its cache in a directory of its
//! own. Invariants:
//! 1. A scenario without binaries has no kubectl, and says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use informer_control_plane::Binaries;
use tempfile::TempDir;

use crate::stage::Stage;

/// kubectl as the administrator.
pub(crate) struct Kubectl {
    program: PathBuf,
    directory: TempDir,
}

/// What one run of kubectl printed.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Kubectl {
    pub(crate) fn of(stage: &Stage) -> Option<Self> {
        let program = Binaries::find_or_skip()?.kubectl().to_owned();
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("kubeconfig"), stage.server.kubeconfig())
            .expect("it can be written");
        Some(Self { program, directory })
    }

    /// What it calls `--cache-dir`.
    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Runs it, and takes what it prints, also if it ends with an error.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Printed {
        let mut command = Command::new(&self.program);
        command.arg(format!("--kubeconfig={}", self.path("kubeconfig")));
        command.arg(format!("--cache-dir={}", self.path("cache")));
        command.args(arguments).env("HOME", self.directory.path()).stdin(Stdio::null());
        command.env_remove("KUBECACHEDIR").env_remove("KUBECONFIG");
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it does not panic");
        let output = output.expect("kubectl runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
        Printed { stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn path(&self, name: &str) -> String {
        Path::display(&self.directory.path().join(name)).to_string()
    }
}

impl Printed {
    /// The requests that it has logged, in their order: the path without the query, and the status. Needs `-v=6`.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        let value = |line: &str, key: &str| {
            let rest = line.split_once(&format!("{key}=\""))?.1;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let of_line = |line: &str| {
            let (url, status) = (value(line, "url")?, value(line, "status")?);
            let path = url.split_once("://")?.1.split_once('/')?.1;
            Some((format!("/{}", path.split('?').next()?), status))
        };
        self.stderr.lines().filter_map(of_line).collect()
    }

    /// The paths of resources that it has asked for.
    pub(crate) fn resources(&self) -> Vec<String> {
        let is_discovery = |path: &str| matches!(path, "/api" | "/apis") || path.starts_with("/openapi");
        self.requests().into_iter().map(|(path, _)| path).filter(|path| !is_discovery(path)).collect()
    }
}
