//! The table: kubeconfig files, and the user as whom kubectl works with each of them.
//!
//! Answers "which files are there, and what does each of them give?" `kubeconfigs.rs` asks kubectl and our client; the
//! words with a dollar are values of `stage.rs`. Where our client differs from kubectl, the row says why.

/// What kubectl does with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It works as this user.
    User(&'static str),
    /// It refuses, or the server refuses it.
    Refused,
}

mod credentials;
mod proxies;

use Outcome::{Refused, User};

pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Names and texts; the first name is given alone, unless there are more.
    pub(crate) files: Vec<(&'static str, String)>,
    pub(crate) context: Option<&'static str>,
    pub(crate) outcome: Outcome,
    /// Our outcome where it is another one, and the reason.
    pub(crate) ours: Option<(Outcome, &'static str)>,
}

const CERTIFIED: Outcome = User("certified");
const ADMIN: Outcome = User("admin");
const CA: &str = "certificate-authority-data: $CA_DATA";
const TOKEN: &str = "token: $TOKEN";

pub(crate) fn file(cluster: &str, user: &str) -> String {
    let indented = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let server = if cluster.contains("server:") { "" } else { "    server: $SERVER\n" };
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n{server}{}contexts:\n\
         - name: c\n  context: {{cluster: k, user: u}}\nusers:\n- name: u\n  user:\n{}",
        indented(cluster),
        indented(user)
    )
}

fn text(name: &'static str, text: String, outcome: Outcome) -> Row {
    Row { name, files: vec![("config", text)], context: None, outcome, ours: None }
}

fn cluster(name: &'static str, cluster: &str, outcome: Outcome) -> Row {
    text(name, file(cluster, TOKEN), outcome)
}

fn user(name: &'static str, user: &str, outcome: Outcome) -> Row {
    text(name, file(CA, user), outcome)
}

impl Row {
    fn but_ours(mut self, outcome: Outcome, reason: &'static str) -> Self {
        self.ours = Some((outcome, reason));
        self
    }

    fn context(mut self, context: &'static str) -> Self {
        self.context = Some(context);
        self
    }

    fn with(mut self, name: &'static str, text: String) -> Self {
        self.files.push((name, text));
        self
    }
}

pub(crate) fn rows() -> Vec<Row> {
    [
        contexts(),
        lists(),
        clusters(),
        proxies::rows(),
        credentials::certificates(),
        credentials::logins(),
        credentials::plugins(),
        credentials::providers(),
        kinds_and_entries(),
        odd(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn contexts() -> Vec<Row> {
    let good = || file(CA, TOKEN);
    let second = "- name: c\n  context: {cluster: k, user: u}\n- name: d\n  context: {cluster: k, user: v}\n";
    let two = good().replace("- name: c\n  context: {cluster: k, user: u}\n", second)
        + "- name: v\n  user: {client-certificate-data: $CERT_DATA, client-key-data: $KEY_DATA}\n";
    let context = "{cluster: k, user: u}";
    vec![
        text("the current context", two.clone(), ADMIN),
        text("a named context", two.clone(), CERTIFIED).context("d"),
        text("a named context that is missing", two, Refused).context("e"),
        text("no current context", good().replace("current-context: c\n", ""), Refused),
        text(
            "a current context that is missing",
            good().replace("current-context: c", "current-context: x"),
            Refused,
        ),
        text("a context without a user", good().replace(context, "{cluster: k}"), Refused),
        text("a user that is missing", good().replace(context, "{cluster: k, user: x}"), Refused),
        text("a context without a cluster", good().replace(context, "{user: u}"), Refused),
        text("a cluster that is missing", good().replace(context, "{cluster: x, user: u}"), Refused),
        text("a namespace", good().replace(context, "{cluster: k, user: u, namespace: here}"), ADMIN),
        text(
            "a namespace that is no label",
            good().replace(context, "{cluster: k, user: u, namespace: Not_One}"),
            ADMIN,
        ),
    ]
}

fn lists() -> Vec<Row> {
    let good = || file(CA, TOKEN);
    let other = || file(CA, "client-certificate-data: $CERT_DATA\nclient-key-data: $KEY_DATA");
    let only = |part: &str| {
        let all = good();
        let from = all.find(part).unwrap_or_else(|| panic!("{part}"));
        let end = all[from..].find("\ncontexts:").map_or(all.len(), |end| from + end + 1);
        all[from..end].to_owned()
    };
    vec![
        text("a list: the first entry of a name counts", good(), ADMIN).with("second", other()),
        text("a list: the other way round", other(), CERTIFIED).with("second", good()),
        text("a list: parts in two files", good().replace(&only("clusters:"), ""), ADMIN)
            .with("second", only("clusters:")),
        text(
            "a list: the first current context counts",
            good().replace("current-context: c", "current-context: ''"),
            ADMIN,
        )
        .with("second", "current-context: c\n".to_owned()),
        text("a list: an unreadable file beside a good one", good(), Refused)
            .with("second", "clusters: [".to_owned()),
        text("a list: a missing file beside a good one", good(), ADMIN).with("-", String::new()),
        text("a list: only missing files", String::new(), Refused).with("-", String::new()),
    ]
}

fn clusters() -> Vec<Row> {
    vec![
        cluster("an authority in the file", CA, ADMIN),
        cluster("an authority in another file", "certificate-authority: $FOLDER/ca.crt", ADMIN),
        cluster("an authority in a relative path", "certificate-authority: ../../ca.crt", ADMIN),
        cluster("an authority in lines", "certificate-authority-data: |\n  $CA_LINES", ADMIN),
        cluster("an authority in a file that is missing", "certificate-authority: $FOLDER/missing", Refused),
        cluster("an authority in an empty file", "certificate-authority: $FOLDER/empty", Refused),
        cluster("an authority of garbage", "certificate-authority: $FOLDER/garbage", Refused),
        cluster("another authority", "certificate-authority-data: $OTHER_DATA", Refused),
        cluster("a bundle with a broken certificate", "certificate-authority: $FOLDER/bundle.crt", ADMIN),
        cluster("a bundle of one broken certificate", "certificate-authority: $FOLDER/broken.crt", Refused),
        cluster(
            "an authority twice",
            "certificate-authority-data: $CA_DATA\ncertificate-authority: $FOLDER/ca.crt",
            Refused,
        ),
        cluster("an empty authority: the system's", "certificate-authority-data: ''", Refused),
        cluster("an authority that is not base64", "certificate-authority-data: '%%%'", Refused),
        cluster("any certificate", "insecure-skip-tls-verify: true", ADMIN),
        cluster(
            "any certificate beside an authority",
            &format!("{CA}\ninsecure-skip-tls-verify: true"),
            Refused,
        ),
        cluster(
            "another name of the server",
            &format!("{CA}\ntls-server-name: kubernetes.default.svc"),
            ADMIN,
        ),
        cluster("a wrong name of the server", &format!("{CA}\ntls-server-name: elsewhere.example"), Refused),
        cluster("no compression", &format!("{CA}\ndisable-compression: true"), ADMIN),
        cluster("a server with a path", &format!("{CA}\nserver: $SERVER/"), ADMIN),
        cluster("a server without a scheme", &format!("{CA}\nserver: $ADDRESS"), Refused),
        cluster("no server", &format!("{CA}\nserver: ''"), Refused),
        cluster("a server of another name", &format!("{CA}\nserver: https://localhost:$PORT"), ADMIN),
    ]
}

fn kinds_and_entries() -> Vec<Row> {
    let good = || file(CA, TOKEN);
    let replaced = |from: &str, to: &str| good().replace(from, to);
    vec![
        text("no kind and no version", replaced("apiVersion: v1\nkind: Config\n", ""), ADMIN),
        text("another kind", replaced("kind: Config", "kind: Pod"), Refused),
        text("another version", replaced("apiVersion: v1", "apiVersion: v2"), Refused),
        text(
            "a broken entry that nobody uses",
            good() + "- name: z\n  user: {client-key-data: '%%%'}\n",
            Refused,
        ),
        text("an entry without a name that nobody uses", good() + "- user: {token: x}\n", ADMIN),
    ]
}

fn odd() -> Vec<Row> {
    let good = || file(CA, TOKEN);
    let replaced = |from: &str, to: &str| {
        assert!(good().contains(from), "{from}");
        good().replace(from, to)
    };
    let json = r#"{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"k","cluster":{"server":"$SERVER","certificate-authority-data":"$CA_DATA"}}],"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{"token":"$TOKEN"}}]}"#;
    let anchored = replaced("    token: $TOKEN\n", "    <<: *t\n")
        .replace("clusters:", "x: &t {token: $TOKEN}\nclusters:");
    vec![
        text("an empty file", String::new(), Refused),
        text("a file of blanks", "\n  \n".to_owned(), Refused),
        text("JSON", json.to_owned(), ADMIN),
        text("JSON with tabs", json.replace(",\"", ",\n\t\""), ADMIN),
        text("a byte order mark", format!("\u{feff}{}", good()), ADMIN),
        text("ends of lines of Windows", good().replace('\n', "\r\n"), ADMIN),
        text("anchors and a merge", anchored, ADMIN),
        text("a key twice", replaced("    token: $TOKEN\n", "    token: wrong\n    token: $TOKEN\n"), ADMIN),
        text("an entry twice", good() + "- name: u\n  user: {token: x}\n", Refused),
        text("unknown fields", good() + "strange: {a: [1]}\npreferences: {colors: true}\n", ADMIN),
        text("a field in another case", replaced("    token:", "    Token:"), Refused),
        text("a number for a token", replaced("token: $TOKEN", "token: 123"), Refused),
        text(
            "a text for a flag",
            replaced("    server:", "    insecure-skip-tls-verify: 'true'\n    server:"),
            Refused,
        ),
        text(
            "yes for a flag",
            replaced("    certificate-authority-data: $CA_DATA\n", "    insecure-skip-tls-verify: yes\n"),
            ADMIN,
        ),
        text(
            "a map for a list",
            replaced("users:\n- name: u\n  user:\n    token: $TOKEN\n", "users: {u: {token: $TOKEN}}\n"),
            Refused,
        ),
        text(
            "null for what is not set",
            replaced("    token: $TOKEN", "    token: $TOKEN\n    exec: ~\n    as: null\n    as-groups:"),
            ADMIN,
        ),
        text("two documents", good() + "---\ncurrent-context: other\n", ADMIN),
        text(
            "extensions",
            replaced(
                "    server:",
                "    extensions:\n    - {name: minikube, extension: {last-update: ~, n: 1}}\n    server:",
            ),
            ADMIN,
        ),
        text("a wrong indentation", replaced("  user:\n    token", "  user:\n token"), Refused),
        text("text that is no YAML", "clusters: [{".to_owned(), Refused),
    ]
}

impl Row {
    fn replaced(mut self, from: &str, to: &str) -> Self {
        assert!(self.files[0].1.contains(from), "{from}");
        self.files[0].1 = self.files[0].1.replace(from, to);
        self
    }
}
