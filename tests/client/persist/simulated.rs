//! Saved caches on simulated time: what is still so after some writes, and what never happens.

use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// An informer of this file, of the cluster that this seed makes. Of one seed and as many maps it is the same cluster at the
/// same version.
fn simulated<F: Future<Output = ()>>(
    seed: u64,
    file: PathBuf,
    maps: impl IntoIterator<Item = Value>,
    scenario: impl FnOnce(ApiServer, Maps) -> F,
) {
    let maps: Vec<Value> = maps.into_iter().collect();
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(seed).in_process(runtime.wall_time()).start().await.unwrap();
        for map in maps {
            server.create(map).unwrap();
        }
        let client = Client::in_process(&runtime, server.service());
        let source = client.resource::<ConfigMap>().namespace("default").packed().persist(file);
        let maps = source.informer(&runtime).unwrap().start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        scenario(server, maps).await;
    });
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
        simulated(1, directory.path().join("maps"), [map("one", "1")], |_, maps| async move {
            some_writes_later().await;
            assert_eq!((begins_with_file(&maps), problem(&maps)), (has_file, None));
            assert_eq!(value(&maps, "one"), Some("1".into()));
        });
    }
}

#[test]
fn the_file_of_another_cluster_is_neither_read_nor_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = || directory.path().join("maps");
    simulated(1, file(), [map("one", "1")], |_, maps| async move {
        some_writes_later().await;
        assert_eq!(problem(&maps), None);
    });
    simulated(2, file(), [map("of-another", "1")], |_, maps| async move {
        some_writes_later().await;
        assert!(!begins_with_file(&maps) && maps.snapshot().len() == 1);
        let why = problem(&maps).expect("it is said");
        assert!(why.contains("another cluster"), "{why}");
        assert!(maps.status().to_string().ends_with(&format!("; not saved: {why}")), "{}", maps.status());
    });
    simulated(1, file(), [map("one", "1")], |_, maps| async move {
        assert!(begins_with_file(&maps), "its own objects are still in it");
        assert_eq!((value(&maps, "one"), maps.snapshot().len()), (Some("1".into()), 1));
    });
}

#[test]
fn what_is_no_saved_cache_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("maps");
    for foreign in [&b"a text that somebody wrote"[..], &[7; 100_000]] {
        std::fs::write(&file, foreign).unwrap();
        simulated(1, file.clone(), [map("one", "1")], |_, maps| async move {
            some_writes_later().await;
            assert_eq!((maps.snapshot().len(), problem(&maps).is_some()), (1, true));
        });
        assert_eq!(std::fs::read(&file).unwrap(), foreign);
    }
    simulated(1, directory.path().join("none/maps"), [map("one", "1")], |_, maps| async move {
        some_writes_later().await;
        assert_eq!((maps.snapshot().len(), problem(&maps).is_some()), (1, true));
    });
}

#[test]
fn a_dictionary_comes_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let long = "the settings of a shop, ".repeat(20);
    let long_map = |number: usize| map(&format!("map-{number:04}"), &format!("{long}{number}"));
    let bytes = |maps: &Maps| maps.snapshot().iter().map(|map| map.kept_bytes()).sum::<usize>();
    let run = |scenario: &dyn Fn(&ApiServer, &Maps)| {
        simulated(1, directory.path().join("maps"), (0..1_300).map(long_map), |server, maps| async move {
            scenario(&server, &maps);
            // It is trained, all objects are compressed by it, and all are written.
            some_writes_later().await;
            assert!(bytes(&maps) < 1_300 * 100, "{} bytes", bytes(&maps));
            assert_eq!(problem(&maps), None);
        });
    };
    run(&|_, maps| assert!(!begins_with_file(maps)));
    run(&|server, maps| {
        assert!(begins_with_file(maps) && bytes(maps) < 1_300 * 100, "{} bytes", bytes(maps));
        assert_eq!(value(maps, "map-0007"), Some(format!("{long}7")));
        server.create(long_map(1_300)).unwrap();
    });
}
