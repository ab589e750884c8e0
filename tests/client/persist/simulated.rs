//! Saved caches on simulated time: what is still so after some writes, and what never happens.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

/// An informer of this file, of the cluster that this seed makes. Of one seed and as many maps it is the same cluster at the
/// same version.
fn simulated(
    seed: u64,
    file: PathBuf,
    maps: impl IntoIterator<Item = Value>,
    scenario: impl AsyncFnOnce(&ApiServer, &Maps),
) {
    let maps: Vec<Value> = maps.into_iter().collect();
    Runtime::simulated(7).run(|runtime| async move {
        let server = simulated_server(&runtime, seed, maps).await;
        let client = Client::in_process(&runtime, server.service());
        let maps = begun(&runtime, &client, file);
        maps.synced_within(LONG).await.unwrap();
        scenario(&server, &maps).await;
    });
}

async fn simulated_server(runtime: &Runtime, seed: u64, maps: Vec<Value>) -> ApiServer {
    let server = ApiServer::builder().seed(seed).in_process(runtime.wall_time()).start().await.unwrap();
    for map in maps {
        server.create(map).unwrap();
    }
    server
}

fn begun(runtime: &Runtime, client: &Client, file: PathBuf) -> Maps {
    let source = client.resource::<ConfigMap>().namespace("default").packed().persist(file);
    source.informer(runtime).unwrap().start().unwrap()
}

/// Longer than some writes take, and some tries again after a failure.
async fn some_writes_later() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

fn begins_with_file(maps: &Maps) -> bool {
    maps.status().saved.unwrap().began_with.is_some()
}

#[test]
fn the_file_is_written_and_read_in_place() {
    let directory = tempfile::tempdir().unwrap();
    for has_file in [false, true] {
        simulated(1, directory.path().join("maps"), [map("one", "1")], async |_, maps| {
            some_writes_later().await;
            assert_eq!((begins_with_file(maps), problem(maps)), (has_file, None));
            assert_eq!(value(maps, "one"), Some("1".into()));
        });
    }
}

#[test]
fn the_file_of_another_cluster_is_neither_read_nor_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = || directory.path().join("maps");
    simulated(1, file(), [map("one", "1")], async |_, maps| {
        some_writes_later().await;
        assert_eq!(problem(maps), None);
    });
    simulated(2, file(), [map("of-another", "1")], async |_, maps| {
        some_writes_later().await;
        assert!(!begins_with_file(maps) && maps.snapshot().len() == 1);
        let why = problem(maps).expect("it is said");
        assert!(why.contains("another cluster"), "{why}");
        assert!(maps.status().to_string().ends_with(&format!("; not saved: {why}")), "{}", maps.status());
    });
    simulated(1, file(), [map("one", "1")], async |_, maps| {
        assert!(begins_with_file(maps), "its own objects are still in it");
        assert_eq!((value(maps, "one"), maps.snapshot().len()), (Some("1".into()), 1));
    });
}

#[test]
fn what_is_no_saved_cache_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("maps");
    for foreign in [&b"a text that somebody wrote"[..], &[7; 100_000]] {
        std::fs::write(&file, foreign).unwrap();
        simulated(1, file.clone(), [map("one", "1")], async |_, maps| {
            some_writes_later().await;
            assert_eq!((maps.snapshot().len(), problem(maps).is_some()), (1, true));
        });
        assert_eq!(std::fs::read(&file).unwrap(), foreign);
    }
    simulated(1, directory.path().join("none/maps"), [map("one", "1")], async |_, maps| {
        some_writes_later().await;
        assert_eq!((maps.snapshot().len(), problem(maps).is_some()), (1, true));
    });
}

#[test]
fn a_dictionary_comes_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let long = "the settings of a shop, ".repeat(20);
    let long_map = |number: usize| map(&format!("map-{number:04}"), &format!("{long}{number}"));
    let bytes = |maps: &Maps| maps.snapshot().iter().map(|map| map.kept_bytes()).sum::<usize>();
    let run = |scenario: &dyn Fn(&ApiServer, &Maps)| {
        simulated(1, directory.path().join("maps"), (0..1_300).map(long_map), async |server, maps| {
            scenario(server, maps);
            // It is trained, all objects are compressed by it, and all are written.
            some_writes_later().await;
            assert!(bytes(maps) < 1_300 * 100, "{} bytes", bytes(maps));
            assert_eq!(problem(maps), None);
        });
    };
    run(&|_, maps| assert!(!begins_with_file(maps)));
    run(&|server, maps| {
        assert!(begins_with_file(maps) && bytes(maps) < 1_300 * 100, "{} bytes", bytes(maps));
        assert_eq!(value(maps, "map-0007"), Some(format!("{long}7")));
        server.create(long_map(1_300)).unwrap();
    });
}

#[test]
fn it_has_not_caught_up_before_it_has_read_what_its_watch_brings_however_late_that_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = || directory.path().join("maps");
    let all = || vec![map("kept", "1"), map("deleted", "1")];
    simulated(1, file(), all(), async |_, _| some_writes_later().await);
    Runtime::simulated(7).run(|runtime| async move {
        let server = simulated_server(&runtime, 1, all()).await;
        server.delete("configmaps", "default", "deleted").unwrap();
        server.faults().deny("watch", "configmaps");
        let client = Client::in_process(&runtime, server.service());
        let maps = begun(&runtime, &client, file());
        reached(&maps, |status| status.objects == 2 && status.last_error().is_some()).await;
        assert!(maps.status().sync_took.is_none());
        // After a watch that failed, the version of the server is asked for while the next one is open and not read.
        server.faults().delay_requests(Some(Duration::from_secs(5)));
        server.faults().allow("watch", "configmaps");
        maps.synced_within(LONG).await.unwrap();
        assert!(begins_with_file(&maps));
        assert_eq!((value(&maps, "kept"), value(&maps, "deleted")), (Some("1".into()), None));
        assert!(maps.status().sync_took > Some(Duration::from_secs(2)), "{:?}", maps.status().sync_took);
    });
}

#[test]
fn when_another_cluster_answers_at_the_address_its_objects_are_not_saved_as_those_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = || directory.path().join("maps");
    Runtime::simulated(7).run(|runtime| async move {
        let first = simulated_server(&runtime, 1, vec![map("one", "1")]).await;
        let others = (0..50).map(|number| map(&format!("other-{number}"), "1"));
        let other = simulated_server(&runtime, 2, others.collect()).await;
        let is_other = Arc::new(AtomicBool::new(false));
        let (services, asked) = ((first.service(), other.service()), Arc::clone(&is_other));
        let client = Client::in_process(&runtime, move |request| match asked.load(Ordering::Relaxed) {
            true => services.1(request),
            false => services.0(request),
        });
        let maps = begun(&runtime, &client, file());
        maps.synced_within(LONG).await.unwrap();
        some_writes_later().await;
        assert_eq!((problem(&maps), maps.snapshot().len()), (None, 1));
        is_other.store(true, Ordering::Relaxed);
        first.faults().end_watches();
        reached(&maps, |status| status.objects >= 50).await;
        some_writes_later().await;
        let why = problem(&maps).expect("it is said");
        assert!(why.contains("another cluster"), "{why}");
    });
    let more = (0..60).map(|number| map(&format!("more-{number}"), "1"));
    simulated(1, file(), [map("one", "1")].into_iter().chain(more), async |_, maps| {
        assert!(begins_with_file(maps));
        let names = maps.snapshot().iter().map(|map| map.key().name().to_owned()).collect::<Vec<_>>();
        assert!(names.iter().all(|name| !name.starts_with("other")), "{names:?}");
    });
}

#[test]
fn a_file_with_a_damaged_byte_is_refused_with_a_reason_or_read_right() {
    let directory = tempfile::tempdir().unwrap();
    let file = || directory.path().join("maps");
    let all = || (0..20).map(|number| map(&format!("map-{number:02}"), &format!("the value {number}")));
    simulated(1, file(), all(), async |_, _| some_writes_later().await);
    let whole = std::fs::read(file()).unwrap();
    let written: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let name = whole.windows(7).position(|bytes| bytes == b"\0map-07").expect("its key") + 1;
    for at in written.into_iter().step_by(311).chain([name]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x80;
        std::fs::write(file(), damaged).unwrap();
        simulated(1, file(), all(), async |_, maps| {
            for number in 0..20 {
                let found = value(maps, &format!("map-{number:02}"));
                assert_eq!(found, Some(format!("the value {number}")), "byte {at}");
            }
            assert_eq!(maps.snapshot().len(), 20, "byte {at}");
            assert!(begins_with_file(maps) || problem(maps).is_some(), "byte {at}: {}", maps.status());
        });
    }
}
