//! What is written to a file and read again, and what is refused.

use proptest::prelude::*;

use super::*;

fn about() -> About {
    About { cluster: "cluster-a".into(), what: "pods".into() }
}

fn entry(namespace: Option<&str>, name: &str, version: u64) -> Entry {
    Entry {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        version: version.to_string(),
        uid: format!("uid-{name}"),
        wire_bytes: 7,
        body: vec![0, 1, 2, 0],
    }
}

proptest! {
    #[test]
    fn an_entry_reads_as_it_was_written(
        namespace in prop::option::of("[a-z0-9-]{1,10}"), name in "[a-z0-9.:-]{1,20}", version in 1_u64..,
        uid in "[a-f0-9-]{0,36}", wire_bytes: u32, body: Vec<u8>,
    ) {
        let entry = Entry { namespace, name, version: version.to_string(), uid, wire_bytes, body };
        let key = key_of(entry.namespace.as_deref(), &entry.name);
        prop_assert_eq!(Entry::read(&key, &entry.value()), Some(entry));
    }

    #[test]
    fn bytes_that_are_no_entry_are_none_or_one_and_no_panic(bytes: Vec<u8>) {
        drop(Entry::read("a", &bytes));
    }
}

#[test]
fn keys_are_in_the_order_of_namespaces_and_then_of_names() {
    let keys = [(None, "z"), (Some("a"), "b"), (Some("a"), "c"), (Some("a-b"), "a"), (Some("b"), "a")];
    let keys = keys.map(|(namespace, name)| key_of(namespace, name));
    assert!(keys.is_sorted(), "{keys:?}");
}

#[test]
fn a_file_that_was_never_written_has_nothing_and_another_cluster_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    assert_eq!(File::open(&path, about()).unwrap().found().unwrap(), None);
    let file = File::open(&path, about()).unwrap();
    assert_eq!(file.found().unwrap(), None);
    let head = Head { version: "9", saved_at: 60, newest: None, set_aside: Some(&[]) };
    file.write(&head, std::iter::empty(), None).unwrap();
    drop(file);
    let file = File::open(&path, about()).unwrap();
    assert_eq!(file.found().unwrap(), Some(Found { version: "9".to_owned(), saved_at: 60 }));
    assert_eq!(file.dictionaries().unwrap(), (BTreeMap::new(), Some(0)));
    drop(file);
    let other = About { cluster: "cluster-b".into(), ..about() };
    assert!(
        matches!(File::open(&path, other).err(), Some(FileError::OtherCluster(found)) if found == "cluster-a")
    );
    let other = About { what: "nodes".into(), ..about() };
    assert_eq!(File::open(&path, other).unwrap().found().unwrap(), None);
}

#[test]
fn what_did_not_decode_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = File::open(&directory.path().join("file"), about()).unwrap();
    let aside = |name: &str| SetAside {
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
        version: "7".to_owned(),
        error: "does not decode".to_owned(),
    };
    for names in [&["a", "b"][..], &["b"], &[]] {
        let set_aside: Vec<SetAside> = names.iter().map(|name| aside(name)).collect();
        let head = Head { version: "9", saved_at: 60, newest: None, set_aside: Some(&set_aside) };
        file.write(&head, std::iter::empty(), None).unwrap();
        assert_eq!(file.undecodable().unwrap(), set_aside);
    }
}

#[test]
fn a_failed_change_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = File::open(&path, about()).unwrap();
    let write = |version, failing: bool| {
        let head = Head { version, saved_at: 60, newest: None, set_aside: Some(&[]) };
        let delete = Ok(Change::Delete { namespace: None, name: "x".to_owned() });
        let failure = failing.then_some(Err(FileError::Unpacked));
        file.write(&head, std::iter::once(delete).chain(failure), None)
    };
    write("9", false).unwrap();
    assert!(write("10", true).is_err());
    assert_eq!(file.found().unwrap().map(|found| found.version), Some("9".to_owned()));
    assert_eq!(entry(None, "x", 1).value().len(), 1 + 1 + 5 + 1 + 4 + 4);
}
