//! What the server does at the start and meanwhile: it is away, refuses the watch, forgets, is restored.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;

use super::*;

#[tokio::test]
async fn saved_objects_are_there_at_once_and_the_informer_is_synced_when_it_has_caught_up() {
    let place = Place::new().await;
    write_once(&place).await;
    place.server.update(map("changed", "2")).unwrap();
    place.server.faults().deny("watch", "configmaps");
    let runtime = threads();
    let maps = place.source().informer(&runtime).unwrap().start().unwrap();
    let status = reached(&maps, |status| status.objects > 0 && status.last_error().is_some()).await;
    let saved = status.saved.clone().unwrap();
    assert_eq!(
        (status.synced, saved.catching_up_to.is_some(), value(&maps, "changed")),
        (false, true, Some("1".into()))
    );
    assert!(status.to_string().contains("catches up to version"), "{status}");
    let why = maps.synced_within(Duration::from_millis(1)).await.unwrap_err().to_string();
    assert!(why.contains("; it began with saved objects, and catches up to version"), "{why}");

    place.server.faults().allow("watch", "configmaps");
    maps.synced_within(LONG).await.unwrap();
    assert_eq!(
        (value(&maps, "changed"), maps.status().saved.unwrap().catching_up_to),
        (Some("2".into()), None)
    );
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_costs_no_list_when_it_is_back() {
    let place = Place::new().await;
    write_once(&place).await;
    let lists = place.lists();
    place.server.faults().refuse_connections();
    let runtime = threads();
    let maps = place.source().informer(&runtime).unwrap().start().unwrap();
    reached(&maps, |status| status.last_error().is_some()).await;
    place.server.faults().accept_connections().unwrap();
    maps.synced_within(LONG).await.unwrap();
    assert!(maps.status().saved.unwrap().began_with.is_some());
    assert_eq!((maps.snapshot().len(), place.lists()), (4, lists));
}

#[tokio::test]
async fn a_list_after_the_first_one_is_the_servers_also_when_it_comes_in_pages() {
    let place = Place::new().await;
    let source = place.source().settings(|settings| settings.page_size = Some(2));
    run(source, async |maps| {
        saved(maps).await;
        let lists = place.lists();
        place.server.faults().gone_next(1);
        place.server.faults().end_watches();
        reached(maps, |status| status.lists.count > 1).await;
        assert!(place.lists() > lists, "the server was listed");
    })
    .await;
}

#[tokio::test]
async fn what_the_server_has_forgotten_is_listed_and_subscribers_are_told_the_difference() {
    let place = Place::new().await;
    write_once(&place).await;
    place.server.delete("configmaps", "default", "deleted").unwrap();
    place.server.create(map("created", "1")).unwrap();
    place.server.faults().compact();
    let runtime = threads();
    let maps = place.source().informer(&runtime).unwrap().start().unwrap();
    let mut events = maps.events().unwrap();
    let mut told = BTreeSet::new();
    while told.len() < 6 {
        told.insert(match events.next().await.expect("it goes on") {
            Notify::Added { object, .. } => ("added", object.key().name().to_owned()),
            Notify::Updated { object, .. } => ("updated", object.key().name().to_owned()),
            Notify::Deleted { last, .. } => ("deleted", last.key().name().to_owned()),
        });
    }
    let saved = ["kept", "changed", "deleted", "touched"].map(|name| ("added", name.to_owned()));
    let differences = [("added", "created".to_owned()), ("deleted", "deleted".to_owned())];
    assert_eq!(told, saved.into_iter().chain(differences).collect());
    assert_eq!(place.lists(), 2, "the watch got a 410");
    maps.synced_within(LONG).await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_restored_from_a_backup_is_noticed_as_without_a_file() {
    let place = Place::new().await;
    let backup = place.server.backup();
    place.server.update(map("changed", "lost")).unwrap();
    place.server.create(map("lost", "1")).unwrap();
    write_once(&place).await;
    place.server.restore(&backup);
    run(place.source(), async |maps| {
        reached(maps, |status| status.objects == 4).await;
        assert_eq!((value(maps, "changed"), value(maps, "lost")), (Some("1".into()), None));
    })
    .await;
}

#[tokio::test]
async fn after_a_rewind_while_it_runs_the_file_has_what_the_server_has() {
    let place = Place::new().await;
    let backup = place.server.backup();
    place.server.update(map("changed", "lost")).unwrap();
    place.server.create(map("lost", "1")).unwrap();
    run(place.source(), async |maps| {
        saved(maps).await;
        place.server.restore(&backup);
        reached(maps, |status| status.objects == 4).await;
        saved_all(&place, maps).await;
    })
    .await;
    // The server passes the lost future while nobody looks.
    for value in 0..9 {
        place.server.update(map("touched", &value.to_string())).unwrap();
    }
    run(place.source(), async |maps| {
        assert!(maps.status().saved.unwrap().began_with.is_some());
        assert_eq!((value(maps, "changed"), value(maps, "lost")), (Some("1".into()), None));
    })
    .await;
}
