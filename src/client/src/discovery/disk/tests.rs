//! The cache on disk: what is written is read again, and what is old, cut or foreign is a miss.

use std::fs::FileTimes;
use std::time::SystemTime;

use super::*;
use crate::discovery::documents::{Root, root};
use crate::discovery::model::FailedGroupVersion;

const URL: &str = "https://10.0.0.1:6443";
const DOCUMENT: &str = r#"{"kind":"APIGroupDiscoveryList","items":[
    {"metadata":{"name":""},"versions":[{"version":"v1","resources":[
        {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["list"],"shortNames":["po"],
         "subresources":[{"subresource":"log","responseKind":{"kind":"Pod"},"verbs":["get"]}]}]}]},
    {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
        {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","verbs":["list"]}]}]}]}"#;

fn served() -> ServerResources {
    match root(DOCUMENT.as_bytes()).unwrap() {
        Root::Aggregated(groups, failed) => ServerResources { groups, failed },
        Root::Legacy(_) => panic!("it is aggregated"),
    }
}

fn answer(body: &'static str) -> Response<Bytes> {
    let answer = Response::builder()
        .header("etag", "\"E1\"")
        .header("content-type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    answer.body(Bytes::from_static(body.as_bytes())).unwrap()
}

fn cache() -> (tempfile::TempDir, Disk) {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::new(directory.path(), URL);
    (directory, disk)
}

/// Makes a file this much older.
fn age(path: &Path, by: Duration) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_times(FileTimes::new().set_modified(modified - by)).unwrap();
}

#[test]
fn what_is_written_is_read_again_in_the_layout_of_kubectl() {
    let (directory, disk) = cache();
    assert!(disk.load(TTL).is_none() && disk.load_answer(0).is_none(), "nothing is there");
    disk.store(&served(), &[None, Some(answer(DOCUMENT))]).unwrap();
    let host = directory.path().join("discovery/10.0.0.1_6443");
    for file in ["servergroups.json", "v1/serverresources.json", "apps/v1/serverresources.json"] {
        assert!(host.join(file).is_file(), "{file}");
    }
    let stored = disk.load(TTL).unwrap();
    assert_eq!(format!("{:?}", stored.groups), format!("{:?}", served().groups));
    let tagged = disk.load_answer(1).unwrap();
    assert_eq!(
        (tagged.etag.as_str(), format!("{:?}", tagged.groups)),
        ("\"E1\"", format!("{:?}", served().groups))
    );
    assert!(disk.load_answer(0).is_none(), "only what was answered is there");
}

#[test]
fn a_version_without_resources_is_written_and_read_like_any_other() {
    let (_directory, disk) = cache();
    let mut served = served();
    served.groups[1].versions[0].resources.clear();
    disk.store(&served, &[None, None]).unwrap();
    assert_eq!(format!("{:?}", disk.load(TTL).unwrap().groups), format!("{:?}", served.groups));
}

#[test]
fn a_file_that_another_process_is_writing_is_left_alone() {
    let (directory, path) = (tempfile::tempdir().unwrap(), "groups.json");
    let (path, beside) = (directory.path().join(path), directory.path().join("groups.json.1"));
    fs::write(&beside, "half of").unwrap();
    let refused = replace(&path, &beside, b"all").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&beside).unwrap(), b"half of");
    write(&path, b"all").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"all");
}

#[cfg(unix)]
#[test]
fn files_and_directories_can_be_read_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, disk) = cache();
    disk.store(&served(), &[Some(answer(DOCUMENT)), None]).unwrap();
    let mut open = vec![directory.path().join("discovery"), directory.path().join("http")];
    let mut files = 0;
    while let Some(path) = open.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{path:?}");
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode, 0o600, "{path:?}");
            files += 1;
        }
    }
    assert_eq!(files, 4, "and no file is left that was being written");
}

#[test]
fn dyn_11_a_file_that_is_too_old_or_from_the_future_is_a_miss() {
    let (_directory, disk) = cache();
    for file in ["servergroups.json", "apps/v1/serverresources.json"] {
        disk.store(&served(), &[None, None]).unwrap();
        let path = disk.documents.join(file);
        age(&path, TTL - Duration::from_secs(60));
        let stored = disk.load(TTL).unwrap();
        assert!(stored.age >= TTL - Duration::from_secs(60), "it is as old as its oldest file");
        age(&path, Duration::from_secs(60));
        assert!(disk.load(TTL).is_none(), "{file}");
        let ahead = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 33);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_times(FileTimes::new().set_modified(ahead))
            .unwrap();
        assert!(disk.load(TTL).is_none(), "{file}");
    }
}

#[test]
fn dyn_11_a_file_that_is_missing_cut_or_something_else_is_a_miss() {
    let (_directory, disk) = cache();
    for file in ["servergroups.json", "v1/serverresources.json"] {
        let path = disk.documents.join(file);
        disk.store(&served(), &[None, None]).unwrap();
        let whole = fs::read(&path).unwrap();
        for broken in [&whole[..whole.len() / 2], b"", b"{}x", b"\xff"] {
            fs::write(&path, broken).unwrap();
            assert!(disk.load(TTL).is_none(), "{file}: {broken:?}");
        }
        fs::remove_file(&path).unwrap();
        assert!(disk.load(TTL).is_none(), "{file} is missing");
    }
}

#[test]
fn dyn_11_an_answer_whose_checksum_is_wrong_is_a_miss() {
    let (_directory, disk) = cache();
    disk.store(&served(), &[None, Some(answer(DOCUMENT))]).unwrap();
    let path = disk.answers.join(answers::file_name(&disk.url, "/apis"));
    let whole = fs::read(&path).unwrap();
    assert!(disk.load_answer(1).is_some());
    for at in [0, 31, 32, whole.len() - 1] {
        let mut broken = whole.clone();
        broken[at] ^= 1;
        fs::write(&path, broken).unwrap();
        assert!(disk.load_answer(1).is_none(), "byte {at}");
    }
    for length in [0, 31, 32, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(disk.load_answer(1).is_none(), "{length} bytes");
    }
}

#[test]
fn an_answer_in_chunks_is_read_as_go_writes_it() {
    let (_directory, disk) = cache();
    let (first, second) = DOCUMENT.split_at(100);
    let response = format!(
        "HTTP/2.0 200 OK\r\nEtag: \"E2\"\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let sum = ring::digest::digest(&ring::digest::SHA256, response.as_bytes());
    let file = [sum.as_ref(), response.as_bytes()].concat();
    write(&disk.answers.join(answers::file_name(&disk.url, "/api")), &file).unwrap();
    assert_eq!(disk.load_answer(0).unwrap().etag, "\"E2\"");
}

#[test]
fn an_incomplete_discovery_is_not_written() {
    let (_directory, disk) = cache();
    let mut served = served();
    let (group, version) = ("metrics.k8s.io".to_owned(), "v1".to_owned());
    served.failed.push(FailedGroupVersion { group, version, reason: "stale".to_owned() });
    disk.store(&served, &[None, None]).unwrap();
    assert!(disk.load(TTL).is_none());
}

#[test]
fn names_that_lead_elsewhere_are_neither_written_nor_followed() {
    let (directory, disk) = cache();
    let mut served = served();
    served.groups[1].name = "../../elsewhere".to_owned();
    disk.store(&served, &[None, None]).unwrap();
    let elsewhere = directory.path().join("elsewhere");
    assert!(!elsewhere.exists());
    let version = &served.groups[1].versions[0];
    fs::create_dir_all(elsewhere.join(&version.name)).unwrap();
    let resources = legacy::written_resources("elsewhere", version);
    fs::write(elsewhere.join(&version.name).join(RESOURCES), resources).unwrap();
    assert!(disk.load(TTL).is_none());
    for (url, expected) in [
        ("https://10.0.0.1:6443", "10.0.0.1_6443"),
        ("http://[::1]:8080", "___1__8080"),
        ("https://rancher.example/k8s/clusters/c-1", "rancher.example/k8s/clusters/c_1"),
        ("https://a/../../b", "a/_/_/b"),
    ] {
        assert_eq!(directory_of(url), PathBuf::from(expected), "{url}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let (directory, disk) = cache();
    fs::write(directory.path().join("discovery"), "a file").unwrap();
    assert!(disk.store(&served(), &[None, None]).is_err());
}
