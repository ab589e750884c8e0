//! JSON lines, for scripts: they replay to the cache.
//!
//! Answers "can a script trust the lines alone?", with the demo as the cluster.

use serde_json::Value;

use crate::process::Informerd;
use crate::replay::Replay;

#[test]
fn the_lines_of_one_process_replay_to_exactly_the_cache() {
    let informerd = Informerd::start(&["--output", "json", "--for", "3s", "--list-at-end"]);
    let (status, lines, stderr) = informerd.end();
    assert!(status.success(), "{status}: {stderr}");
    let replay = Replay::of(&lines);
    replay.check_against_summary();
    assert!(replay.causes["InitialList"] >= 290 && replay.causes["Watch"] > 0, "{:?}", replay.causes);
    assert_eq!(replay.summary.as_ref().unwrap()["ending"], "TimeOver");
}

#[test]
fn the_status_is_written_when_it_changes_and_once_a_second() {
    let informerd = Informerd::start(&["--output", "json", "--for", "3s"]);
    let (_, lines, _) = informerd.end();
    let statuses = Replay::of(&lines).statuses;
    let states: Vec<&str> = statuses.iter().filter_map(|status| status["state"].as_str()).collect();
    let synced = |status: &&Value| status["state"] == "Streaming" && status["objects"].as_u64() >= Some(290);
    assert!(statuses.iter().filter(synced).count() >= 2, "{states:?}");
    assert_eq!(states.last(), Some(&"Stopped"));
    let members: Vec<&str> = statuses[0].as_object().unwrap().keys().map(String::as_str).collect();
    for member in
        ["kind", "state", "objects", "resourceVersion", "restarts", "relists", "lastError", "undecodable"]
    {
        assert!(members.contains(&member), "no {member} in {members:?}");
    }
}

#[test]
fn client_informerd_each_event_has_a_time_and_says_what_the_text_says() {
    let (_, lines, _) = Informerd::start(&["--output", "json", "--for", "3s"]).end();
    let documents = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = documents.filter(|document| document.get("event").is_some()).collect();
    let mut times = Vec::new();
    for event in &events {
        let time = event["time"].as_str().unwrap_or_else(|| panic!("no time in {event}"));
        assert!(time.len() == "2026-11-27T12:00:00.000Z".len() && time.ends_with('Z'), "{time}");
        times.push(time);
        match event["event"].as_str() {
            Some("Updated") => assert!(!event["changes"].as_array().unwrap().is_empty(), "{event}"),
            _ => assert!(event["outline"].as_str().is_some_and(|outline| !outline.is_empty()), "{event}"),
        }
    }
    assert!(times.is_sorted() && events.iter().any(|event| event["event"] == "Updated"));
}

#[test]
fn a_resync_writes_every_object_again_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resync.toml");
    std::fs::write(&file, "[[informer]]\nkind = \"Pod\"\nresync_seconds = 1\n[demo]\npods = 20\n").unwrap();
    let file = file.to_str().unwrap();
    let informerd = Informerd::start(&["--output", "json", "--for", "4s", "--list-at-end", "--config", file]);
    let (_, lines, _) = informerd.end();
    let replay = Replay::of(&lines);
    replay.check_against_summary();
    assert!(replay.causes["Resync"] >= 20, "{:?}", replay.causes);
}

#[test]
fn the_queue_order_and_the_policy_of_the_configuration_are_shown_and_every_change_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("every.toml");
    let text = "[[informer]]\nkind = \"Pod\"\nqueue_order = \"per-key\"\npolicy = \"restate\"\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let informerd = Informerd::start(&["--output", "json", "--for", "3s", "--list-at-end", "--config", file]);
    let (status, lines, stderr) = informerd.end();
    assert!(status.success(), "{stderr}");
    let replay = Replay::of(&lines);
    replay.check_against_summary();
    let summary = &replay.summary.as_ref().unwrap()["informers"][0];
    for written in [summary, replay.statuses.last().unwrap()] {
        assert_eq!(
            (written["queueOrder"].as_str(), written["policy"].as_str()),
            (Some("per-key"), Some("restate"))
        );
        assert_eq!((written["coalesced"].as_u64(), written["dropped"].as_u64()), (Some(0), Some(0)));
    }
}

#[test]
fn kinds_of_all_representations_replay_together() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kinds.toml");
    let text = "[[informer]]\nkind = \"Pod\"\nrepresentation = \"metadata\"\n\
                [[informer]]\nkind = \"Namespace\"\n";
    std::fs::write(&file, text).unwrap();
    let informerd = Informerd::start(&[
        "--output",
        "json",
        "--for",
        "2s",
        "--list-at-end",
        "--config",
        file.to_str().unwrap(),
    ]);
    let (status, lines, stderr) = informerd.end();
    assert!(status.success(), "{stderr}");
    let replay = Replay::of(&lines);
    assert_eq!(replay.objects, replay.cached);
    let of = |kind: &str| replay.objects.keys().filter(|key| key.0 == kind).count();
    assert!(of("Pod") >= 290 && of("Namespace") >= 4, "{} pods, {} namespaces", of("Pod"), of("Namespace"));
}
