//! A receiver in many worlds, each of a seed: restored backups, lost versions, deaths, objects that do not decode.
//!
//! Answers "does the receiver have what the server has in the end?"

use std::collections::BTreeMap;

use actix_informer::object::Uid;
use informer_actors::testing::{Faults, Site, kill_every};

use super::*;

/// What a receiver that follows the rules has: the version of each uid.
#[derive(Default)]
struct Sink {
    maps: BTreeMap<String, (Option<Uid>, String)>,
    parts: usize,
}

impl Sink {
    fn take(&mut self, part: &Part) {
        self.parts += 1;
        match part {
            PassedPart::Applied(map) => {
                let value = map.body().body().expect("it has one").data.as_ref().expect("data")["k"].clone();
                self.maps.insert(map.key().name().to_owned(), (map.object_uid().cloned(), value));
            }
            PassedPart::Deleted(last) => {
                let is_it = |(uid, _): &mut (Option<Uid>, String)| uid.as_ref() == last.object_uid();
                if self.maps.get_mut(last.key().name()).is_some_and(is_it) {
                    self.maps.remove(last.key().name());
                }
            }
            PassedPart::DeletedUndecodable(last) => drop(self.maps.remove(last.key.name())),
            _ => {}
        }
    }
}

fn is_decodable(value: &str) -> bool {
    !value.ends_with('7')
}

/// Writes for a while as watches and lists break, versions are forgotten, the server is restored from a backup, objects do
/// not decode, actors die at this site, and the receiver is slow: then the receiver has what the server has.
fn follows_the_server(seed: u64, faults: Faults) {
    Runtime::simulation(seed).faults(faults).build().run(|runtime| async move {
        let server = served(&runtime, seed).await;
        let client = Client::in_process(&runtime, server.service());
        let (to, mut parts) = passing();
        let choosy = Typed::<ConfigMap>::new().transform(|map| {
            let is_right =
                map.data.as_ref().and_then(|data| data.get("k")).is_none_or(|value| is_decodable(value));
            if is_right { Ok(map) } else { Err("refused".into()) }
        });
        let maps =
            source(&client).settings(|settings| settings.page_size = Some(3)).keep_as_named("choosy", choosy);
        let maps = maps.pass_to(to).informer(&runtime).unwrap().start().unwrap();
        let (mut dice, mut sink, mut backup) = (fastrand::Rng::with_seed(seed), Sink::default(), None);
        for _ in 0..300 {
            let name = format!("map-{}", dice.u64(0..12));
            let value = dice.u64(0..1_000_000).to_string();
            match dice.u64(0..10) {
                0..3 => drop(server.create(map(&name, &value))),
                3..7 => drop(server.update(map(&name, &value))),
                7 | 8 => drop(server.delete("configmaps", "default", &name)),
                _ => match dice.u64(0..8) {
                    0 => server.faults().compact(),
                    1 => server.faults().reset_watches(),
                    2 => server.faults().gone_next(1),
                    3 => server.faults().expire_continue_tokens(),
                    4 => backup = Some(server.backup()),
                    5 => backup.iter().for_each(|backup| server.restore(backup)),
                    _ => server.faults().fail_next(1, 500),
                },
            }
            tokio::time::sleep(Duration::from_millis(dice.u64(0..4_000))).await;
            for _ in 0..dice.u64(0..3) {
                if let Some(more) = parts.next().now_or_never().flatten() {
                    more.iter().for_each(|part| sink.take(part));
                }
            }
        }
        server.faults().reset_watches();
        server.create(map("last", "1")).unwrap();
        while !sink.maps.contains_key("last") {
            let more = tokio::time::timeout(LONG, parts.next()).await.expect("it comes").expect("it goes on");
            more.iter().for_each(|part| sink.take(part));
        }
        let listed =
            client.api::<ConfigMap>().namespaced("default").list(&ListParams::default()).await.unwrap();
        let of_server = listed.items.iter().map(|map| {
            let uid = map.metadata.uid.as_deref().and_then(Uid::new);
            (map.metadata.name.clone().unwrap(), (uid, map.data.as_ref().unwrap()["k"].clone()))
        });
        let (mut of_server, mut has): (BTreeMap<_, _>, _) = (of_server.collect(), sink.maps);
        assert!(has.keys().all(|name| of_server.contains_key(name)), "seed {seed}: {has:?}, {of_server:?}");
        of_server.retain(|_, (_, value)| is_decodable(value));
        has.retain(|name, _| of_server.contains_key(name));
        assert_eq!(has, of_server, "seed {seed}, {} parts", sink.parts);
        drop(maps);
    });
}

#[test]
fn a_receiver_has_what_the_server_has_whatever_breaks_and_dies() {
    let seeds = std::env::var("INFORMER_SIM_SEEDS").map_or(6, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        follows_the_server(seed, Faults::new(|_| ()));
        for site in [
            Site::ReflectorReceived,
            Site::DeltaFifoPush,
            Site::DeltaFifoPop,
            Site::IndexerApply,
            Site::IndexerReplace,
            Site::IndexerPublished,
        ] {
            follows_the_server(seed, kill_every(site, 11, 5));
        }
    }
}
