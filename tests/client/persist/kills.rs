//! A process that saves its cache is killed at any moment: what does its file hold then?

use std::time::Duration;

use super::*;

const FILE: &str = "PERSIST_TEST_FILE";
const KUBECONFIG: &str = "PERSIST_TEST_KUBECONFIG";

/// The process that is killed: an informer that saves, until then.
#[test]
#[ignore = "a part of the test below, which starts it as a process of its own"]
fn saves_until_it_is_killed() {
    let (Ok(file), Ok(kubeconfig)) = (std::env::var(FILE), std::env::var(KUBECONFIG)) else { return };
    let client = Client::new(Config::from_kubeconfig_text(&kubeconfig, None).unwrap()).unwrap();
    let runtime = threads();
    let source = client.resource::<ConfigMap>().namespace("default").packed().persist(file);
    let maps = source.informer(&runtime).unwrap().start().unwrap();
    loop {
        std::thread::park();
        drop(maps.status());
    }
}

/// How often, unless `INFORMER_KILLS` says it.
const KILLS: u64 = 6;

/// Killed also when the test fails before.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A change of the server, and the value that it leaves.
fn change(server: &ApiServer, number: usize, text: &str) -> (&'static str, Option<String>) {
    let passing = "comes-and-goes";
    match number % 4 {
        0 => drop(server.create(map(passing, text)).unwrap()),
        1 => drop(server.update(map("kept", text)).unwrap()),
        2 => drop(server.delete("configmaps", "default", passing).unwrap()),
        _ => drop(server.update(map("changed", text)).unwrap()),
    }
    match number % 4 {
        0 => (passing, Some(text.to_owned())),
        1 => ("kept", Some(text.to_owned())),
        2 => (passing, None),
        _ => ("changed", Some(text.to_owned())),
    }
}

#[tokio::test]
async fn whenever_a_process_is_killed_its_file_is_whole_and_true_at_its_version() {
    let place = Place::new().await;
    let kills = std::env::var("INFORMER_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut history: Vec<(u64, &str, Option<String>)> =
        ["kept", "changed"].map(|name| (place.server.revision(), name, Some("1".to_owned()))).into();
    let (mut random, mut written, mut found) = (fastrand::Rng::with_seed(7), 0, 0);
    let modified = || std::fs::metadata(place.file()).and_then(|file| file.modified()).ok();
    for round in 0..kills {
        let before = modified();
        let mut child = Killed(
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "persist::kills::saves_until_it_is_killed", "--ignored"])
                .env(FILE, place.file())
                .env(KUBECONFIG, place.server.kubeconfig())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap(),
        );
        let until = tokio::time::Instant::now() + Duration::from_millis(random.u64(500..2_500));
        for number in 0.. {
            let (name, value) = change(&place.server, number, &format!("{round}-{number}"));
            history.push((place.server.revision(), name, value));
            tokio::task::yield_now().await;
            if number % 4 == 3 && tokio::time::Instant::now() > until {
                break;
            }
        }
        assert_eq!(child.0.try_wait().unwrap(), None, "it runs until it is killed");
        drop(child);
        written += u64::from(modified() != before);

        let runtime = threads();
        let maps: Maps = place.source().informer(&runtime).unwrap().start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        let snapshot = maps.snapshot();
        assert_eq!(problem(&maps), None);
        found += u64::from(maps.status().saved.unwrap().began_with.is_some());
        let version: u64 = snapshot.versions().iter().next().unwrap().1.to_string().parse().unwrap();
        for name in ["kept", "changed", "comes-and-goes"] {
            let then = history.iter().rev().find(|(at, of, _)| *at <= version && *of == name);
            let object = snapshot.get(&ObjectKey::namespaced("default", name));
            let value = object.map(|object| object.decoded().unwrap().data.as_ref().unwrap()["k"].clone());
            assert_eq!(
                value,
                then.and_then(|(_, _, value)| value.clone()),
                "{name} at {version}, round {round}"
            );
        }
        drop(maps);
        runtime.shutdown(LONG).await.unwrap();
    }
    assert!(written * 2 > kills && found * 2 > kills, "{written} of {kills} have written, {found} were read");
}
