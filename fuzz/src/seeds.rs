//! The inputs with which fuzzing begins, and a simple mutator for runs without libFuzzer.
//!
//! Answers "what does each target usually read?" with small documents as servers send them, and with documents that were
//! read wrongly in the past.

use fastrand::Rng;
use informer_apiserver::fuzzing::to_protobuf;
use serde_json::{Value, json};

/// The token in the seeds, which no output may show.
pub const SECRET: &str = "s3cret-t0ken";

/// The targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    missing_docs,
    clippy::exhaustive_enums,
    reason = "they are named like their functions, and nobody else has them"
)]
pub enum Target {
    FramesWatch,
    FramesList,
    DecodeList,
    DecodeWatch,
    ProtobufList,
    ProtobufWatch,
    Status,
    MetaScan,
    Pruned,
    Kubeconfig,
    ExecOutput,
    DiscoveryDocument,
    RequestBody,
    RequestLine,
    PatchBody,
    Definition,
    WebsocketFrames,
    LogLines,
}

impl Target {
    /// All targets, with the names of their binaries.
    pub const ALL: [(Self, &str); 18] = [
        (Self::FramesWatch, "frames_watch"),
        (Self::FramesList, "frames_list"),
        (Self::DecodeList, "decode_list"),
        (Self::DecodeWatch, "decode_watch"),
        (Self::ProtobufList, "protobuf_list"),
        (Self::ProtobufWatch, "protobuf_watch"),
        (Self::Status, "status"),
        (Self::MetaScan, "meta_scan"),
        (Self::Pruned, "pruned"),
        (Self::Kubeconfig, "kubeconfig"),
        (Self::ExecOutput, "exec_output"),
        (Self::DiscoveryDocument, "discovery_document"),
        (Self::RequestBody, "request_body"),
        (Self::RequestLine, "request_line"),
        (Self::PatchBody, "patch_body"),
        (Self::Definition, "definition"),
        (Self::WebsocketFrames, "websocket_frames"),
        (Self::LogLines, "log_lines"),
    ];

    /// Runs it once.
    pub fn run(self, data: &[u8]) {
        match self {
            Self::FramesWatch => crate::frames_watch(data),
            Self::FramesList => crate::frames_list(data),
            Self::DecodeList => crate::decode_list(data),
            Self::DecodeWatch => crate::decode_watch(data),
            Self::ProtobufList => crate::protobuf_list(data),
            Self::ProtobufWatch => crate::protobuf_watch(data),
            Self::Status => crate::status(data),
            Self::MetaScan => crate::meta_scan(data),
            Self::Pruned => crate::pruned(data),
            Self::Kubeconfig => crate::kubeconfig(data),
            Self::ExecOutput => crate::exec_output(data),
            Self::DiscoveryDocument => crate::discovery_document(data),
            Self::RequestBody => crate::request_body(data),
            Self::RequestLine => crate::request_line(data),
            Self::PatchBody => crate::patch_body(data),
            Self::Definition => crate::definition(data),
            Self::WebsocketFrames => crate::websocket_frames(data),
            Self::LogLines => crate::log_lines(data),
        }
    }

    /// Its first inputs.
    pub fn seeds(self) -> Vec<Vec<u8>> {
        let framed = |seeds: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
            let first = [0x00, 0x07, 0x9f, 0xe3];
            let seeds = seeds.into_iter().enumerate();
            seeds.map(|(at, seed)| [&[first[at % first.len()]], &*seed].concat()).collect()
        };
        match self {
            Self::FramesWatch => framed(watches()),
            Self::FramesList => framed(lists()),
            Self::DecodeList => lists(),
            Self::DecodeWatch => watches(),
            Self::ProtobufList => vec![protobuf_list_seed()],
            Self::ProtobufWatch => vec![protobuf_events()],
            Self::Status => statuses(),
            Self::MetaScan | Self::Pruned => {
                vec![pod("a", 7).into(), sorted().into(), pod("b", 8)[..90].into()]
            }
            Self::Kubeconfig => kubeconfigs(),
            Self::ExecOutput => exec_outputs(),
            Self::DiscoveryDocument => discovery_documents(),
            Self::RequestBody => bodies(),
            Self::RequestLine => lines(),
            Self::PatchBody => patches(),
            Self::Definition => definitions(),
            Self::WebsocketFrames => websockets(),
            Self::LogLines => framed(watches()),
        }
    }
}

/// What a server sends on a websocket: a byte that chooses how it arrives, then frames.
fn websockets() -> Vec<Vec<u8>> {
    let frame = |head: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).expect("a short frame");
        [&[head, length], payload].concat()
    };
    let status = br#"{"status":"Failure","reason":"NonZeroExitCode"}"#;
    let command = [
        frame(0x82, b"\x01"),
        frame(0x82, b"\x01out"),
        frame(0x02, b"\x02er"),
        frame(0x89, b"ping"),
        frame(0x00, b""),
        frame(0x80, b"r"),
        frame(0x82, &[&[3], &status[..]].concat()),
        frame(0x82, &[255, 1]),
        frame(0x88, &[0x03, 0xe8]),
    ];
    let ports = [
        frame(0x82, &[0, 80, 0]),
        frame(0x82, &[1, 80, 0]),
        frame(0x82, b"\x02\xfb"),
        frame(0x82, b"\x02\x20bytes"),
        frame(0x82, b"\x00bytes"),
        frame(0x82, b"\x01refused"),
        frame(0x88, b""),
    ];
    let long = [&[0x82, 126, 1, 0][..], &[1; 256]].concat();
    let huge = [&[0x82, 127, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff][..], &[1; 300]].concat();
    let command = command.concat();
    [(0x00, &command), (0x3f, &command), (0x43, &ports.concat()), (0x07, &long), (0x1f, &huge)]
        .map(|(first, bytes)| [&[first], &**bytes].concat())
        .to_vec()
}

/// A pod with most sorts of values.
fn full_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": "7", "labels": {"app": "b"},
            "creationTimestamp": "2026-01-02T03:04:05Z", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3}}],
            "securityContext": {"supplementalGroups": [1, 2]}, "tolerations": [{"tolerationSeconds": -1}]},
        "status": {"phase": "Running", "startTime": "2026-01-02T03:04:05Z"},
    })
}

fn protobuf_list_seed() -> Vec<u8> {
    let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "9"},
        "items": [full_pod("one"), full_pod("two")]});
    to_protobuf(&list).expect("a built-in kind")
}

fn protobuf_events() -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let (low, high) = ((bytes.len() & 0x7f) as u8 | 0x80, (bytes.len() >> 7) as u8);
        [&[number << 3 | 2, low, high], bytes].concat()
    };
    let event = |name: &str, object: &Value| {
        let object = to_protobuf(object).expect("a built-in kind");
        let event = [field(1, name.as_bytes()), field(2, &field(1, &object))].concat();
        let length = u32::try_from(event.len()).expect("short").to_be_bytes();
        [&length[..], &event].concat()
    };
    let end = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "9",
        "annotations": {"k8s.io/initial-events-end": "true"}}});
    let status =
        json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410});
    let pods = ["ADDED", "MODIFIED", "DELETED", "OTHER"].map(|name| event(name, &full_pod("one")));
    [pods.concat(), event("BOOKMARK", &end), event("ERROR", &status)].concat()
}

fn pod(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"n","uid":"u-{name}","resourceVersion":"{version}","labels":{{"app":"é\n]}}"}},"managedFields":[{{"manager":"m"}}]}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#
    )
}

/// A pod with its members in alphabetical order, as servers send custom resources.
fn sorted() -> String {
    r#"{"apiVersion":"v1","data":{"metadata":1},"kind":"Pod","metadata":{"annotations":{"x":"no"},"name":"web-0","namespace":"a","resourceVersion":"7","uid":"u"},"spec":{"containers":[]}}"#.to_owned()
}

/// Documents of both forms.
fn discovery_documents() -> Vec<Vec<u8>> {
    let aggregated = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get","list","watch"],"shortNames":["deploy"],"categories":["all"],"subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]},{"subresource":"status","responseKind":{"kind":"Deployment"},"verbs":null}]}]},{"version":"v1beta1","freshness":"Stale","resources":null}]},{"metadata":{"name":""},"versions":[{"version":"v1","resources":[{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["list"],"shortNames":["po"]},{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster","verbs":["list"]}]}]}]}"#;
    let groups = r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}"#;
    let resources = r#"{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["list"],"shortNames":["deploy"]},{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]}]}"#;
    [aggregated, groups, resources, r#"{"kind":"APIVersions","versions":["v1"]}"#]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

fn lists() -> Vec<Vec<u8>> {
    let list = |items: &str| {
        format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9","continue":"more"}},"items":[{items}]}}"#
        )
    };
    let items = format!("{},{}", pod("a", 1), pod("b", 2));
    // Two items whose quotes or brackets make one item of them.
    let swallowed = r#"{"metadata":{"name":"a","resourceVersion":"1","x":"y},{"metadata":{"name":z"}}"#;
    let unclosed = format!("{},{}}}", pod("a", 1).trim_end_matches('}'), pod("b", 2));
    let first_items =
        format!(r#"{{"items":[{items}],"metadata":{{"resourceVersion":"9"}},"kind":"PodList"}}"#);
    let table =
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"rows":[]}"#;
    [&*list(&items), &*list(""), &first_items, &list(swallowed), &list(&unclosed), table, r#"{"items":null}"#]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

fn watches() -> Vec<Vec<u8>> {
    let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let bookmark = r#"{"kind":"Pod","metadata":{"resourceVersion":"30","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let status = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
    let valid = [
        event("ADDED", &pod("a", 1)),
        event("MODIFIED", &sorted()),
        event("DELETED", &pod("a", 3)),
        event("BOOKMARK", bookmark),
        event("ERROR", status),
    ];
    let other = format!("{{\"object\":{},\"type\":\"ADDED\",\"more\":{{}}}}\n", pod("c", 4));
    let joined = event("ADDED", &pod("a", 1)).trim_end().to_owned() + &event("ADDED", &pod("b", 2));
    [valid.concat(), other, joined, event("RENAMED", &pod("d", 5)), event("ADDED", "7")]
        .map(String::into_bytes)
        .into()
}

fn statuses() -> Vec<Vec<u8>> {
    let bodies: [(u16, &str); 5] = [
        (410, r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old","details":null}"#),
        (429, r#"{"kind":"Status","code":429,"message":"m","details":{"retryAfterSeconds":7}}"#),
        (
            504,
            r#"{"kind":"Status","code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
        ),
        (429, "18446744073709551615"),
        (502, "<html>bad gateway</html>"),
    ];
    bodies.iter().map(|(code, body)| [&code.to_be_bytes(), body.as_bytes()].concat()).collect()
}

fn kubeconfigs() -> Vec<Vec<u8>> {
    let whole = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n    server: https://127.0.0.1:6443\n    \
         certificate-authority-data: LS0tLS0=\n    tls-server-name: api\ncontexts:\n- name: c\n  context:\n    cluster: k\n    user: u\n    \
         namespace: n\nusers:\n- name: u\n  user:\n    token: {SECRET}\n"
    );
    let insecure = whole.replace("certificate-authority-data: LS0tLS0=", "insecure-skip-tls-verify: true");
    let plugin = "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never, \
                  provideClusterInfo: true, env: [{name: A, value: b}], args: [x]}\n    as: jane\n    as-groups: [a]";
    let plugin = whole.replace("    token:", &format!("    {plugin}\n    x-token:"));
    let login = "auth-provider: {name: oidc, config: {idp-issuer-url: 'https://i', client-id: c}}\n    client-key-data: TQ==";
    let login = whole.replace("    token:", &format!("    {login}\n    token:"));
    let json =
        r#"{"kind":"Config","clusters":null,"users":[{"name":"u","user":{"password":"p","username":"u"}}]}"#;
    let texts = [
        whole,
        insecure,
        plugin,
        login,
        json.to_owned(),
        "{}".to_owned(),
        "clusters: [{name: k}]".to_owned(),
    ];
    texts.map(String::into_bytes).into()
}

/// What credential plugins print, in JSON and YAML.
fn exec_outputs() -> Vec<Vec<u8>> {
    let credential = |status: &str| {
        format!(
            r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{status}}}"#
        )
    };
    let token =
        credential(&format!(r#"{{"token":"{SECRET}","expirationTimestamp":"2030-01-01T00:00:00Z"}}"#));
    let certificate = credential(&format!(r#"{{"clientCertificateData":"c","clientKeyData":"{SECRET}"}}"#));
    let yaml = format!(
        "apiVersion: client.authentication.k8s.io/v1beta1\nkind: ExecCredential\nstatus:\n  token: {SECRET}\n"
    );
    let half = credential(&format!(r#"{{"clientKeyData":"{SECRET}","token":null}}"#));
    [token, certificate, yaml, half].map(String::into_bytes).into()
}

/// Bodies of writes, behind a byte that chooses how they are read.
fn bodies() -> Vec<Vec<u8>> {
    // A config map as kubectl sends it: envelope, type, metadata with a name, one entry.
    let config_map = b"\0k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x1d\n\r\n\x01a\x12\0\x1a\0\x38\0\x1a\x02xx\x12\x0c\n\x03key\x12\x05value";
    // The same envelope without a type; the first byte chooses the kind.
    let untyped: [&[u8]; 3] =
        [b"\x02k8s\0\x12\x04\x12\x02\x12\0", b"\x04k8s\0\x12\x06\n\x04\x12\x02\x08\x01", b"\x06k8s\0\x12\0"];
    let yaml: [&[u8]; 3] = [
        b"\x01metadata:\n  name: a\ndata:\n  k: \"yes\"\n  0644: ~\n",
        b"\x01a: &x [1, 2.5, {b: off}]\nc: *x\n<<: {d: |\n  text\n}\n",
        b"\x01a: 1\n---\nb: 2\n",
    ];
    let all = [&config_map[..]].into_iter().chain(untyped).chain(yaml);
    all.map(<[u8]>::to_vec).collect()
}

fn lines() -> Vec<Vec<u8>> {
    [
        "/api/v1/namespaces/a/pods/b/status?watch=1&resourceVersion=7",
        "/apis/apps/v1/deployments?labelSelector=a%20in%20(b,c),!d&fieldSelector=metadata.name%3Dx&limit=5",
        "/api/v1/watch/namespaces/a/pods?sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "/apis/example.com/v1/widgets/%77?timeoutSeconds=3&continue=e30",
        "/api/v1/namespaces/a/finalize//?dryRun=All",
    ]
    .map(|line| line.as_bytes().to_vec())
    .into()
}

/// Patches of a deployment, after a byte that chooses their language.
fn patches() -> Vec<Vec<u8>> {
    [
        "\0[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":3},{\"op\":\"remove\",\"path\":\"/metadata/finalizers/0\"}]",
        "\0[{\"op\":\"test\",\"path\":\"/spec/paused\",\"value\":null},{\"op\":\"move\",\"from\":\"/spec\",\"path\":\"/spec/a~1b\"}]",
        "\u{1}{\"metadata\":{\"labels\":{\"a\":\"b\"},\"uid\":null},\"spec\":{\"replicas\":2,\"template\":null}}",
        "\u{2}{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"env\":[{\"name\":\"A\",\"$patch\":\"delete\"}]}],\"$setElementOrder/containers\":[{\"name\":\"main\"}]}}}}",
        "\u{2}{\"spec\":{\"strategy\":{\"$retainKeys\":[\"type\"],\"type\":\"Recreate\"}},\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"x.y/z\"]}}",
        "\u{3}apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, labels: {a: b}}\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - {name: side, image: i}\n",
    ]
    .map(|patch| patch.as_bytes().to_vec())
    .into()
}

/// Schemas with objects, a zero byte between them.
fn definitions() -> Vec<Vec<u8>> {
    [
        "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1,\"default\":2},\"s\":{\"type\":\"string\",\"pattern\":\"^a+$\",\"nullable\":true}}}}}\0{\"spec\":{\"n\":3,\"s\":\"aa\",\"x\":1}}",
        "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"k\"],\"items\":{\"type\":\"object\",\"required\":[\"k\"],\"properties\":{\"k\":{\"type\":\"string\"}}}}}}\0{\"l\":[{\"k\":\"a\"},{\"k\":\"b\"}]}",
        "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{\"p\":{\"x-kubernetes-int-or-string\":true,\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}}}\0{\"p\":\"80\",\"free\":[1,{\"a\":null}]}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},\"x-kubernetes-validations\":[{\"rule\":\"self.a < self.b\",\"message\":\"m\"}]}\0{\"a\":1,\"b\":2}",
    ]
    .map(|seed| seed.as_bytes().to_vec())
    .into()
}

/// A seed with one to seven random changes; a change may also append a part of another seed.
pub fn mutated(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    const TOKENS: &[u8] = b"\"\\{}[],: \n\0\xff07n";
    let mut data = seeds[rng.usize(..seeds.len())].clone();
    for _ in 0..rng.usize(1..8) {
        let at = rng.usize(..=data.len());
        let end = (at + rng.usize(..=24)).min(data.len());
        match rng.u8(..7) {
            0 => data.truncate(at),
            1 => drop(data.drain(at..end)),
            2 => data.extend_from_within(at..end),
            3 => data.insert(at, TOKENS[rng.usize(..TOKENS.len())]),
            4 if at < data.len() => data[at] = TOKENS[rng.usize(..TOKENS.len())],
            5 if at < data.len() => data[at] ^= 1 << rng.u8(..8),
            6 => {
                let other = &seeds[rng.usize(..seeds.len())];
                let from = rng.usize(..=other.len());
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
            _ => {}
        }
    }
    data
}
