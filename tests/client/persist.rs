//! Caches that are saved to a file, against the in-memory API server.
//!
//! Answers "with what does an informer begin after a restart, and when must it not use a file?"

use std::path::Path;

use actix_informer::client::{Client, Config, Error, ResourceSource};
use actix_informer::prelude::*;
use actix_informer::representation::{LazyBody, Packed, Prune};
use informer_apiserver::{ApiServer, Credential, Request, User};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::scripted::*;

mod kills;
mod servers;
#[cfg(feature = "testing")]
mod simulated;

type Maps = Informer<LazyBody<ConfigMap>>;

fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"k": value},
    })
}

fn client_of(server: &ApiServer) -> Client {
    Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap()
}

/// A server, the directory of the file, and what is in the file.
struct Place {
    server: ApiServer,
    directory: tempfile::TempDir,
}

impl Place {
    async fn new() -> Self {
        let server = ApiServer::builder().seed(1).start().await.unwrap();
        for name in ["kept", "changed", "deleted", "touched"] {
            server.create(map(name, "1")).unwrap();
        }
        Self { server, directory: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("maps.redb")
    }

    fn source(&self) -> ResourceSource<ConfigMap, Packed<ConfigMap>> {
        client_of(&self.server).resource::<ConfigMap>().namespace("default").packed().persist(self.file())
    }

    /// Without the question at which version the server is, which names an object.
    fn lists(&self) -> usize {
        let is_list = |request: &&Request| {
            let names = request.parameter("fieldSelector").is_some();
            request.verb == "list" && request.resource == "configmaps" && !names
        };
        self.server.requests().iter().filter(is_list).count()
    }
}

/// The runtime ends with it, and the file is closed.
async fn run<T>(
    source: ResourceSource<ConfigMap, Packed<ConfigMap>>,
    scenario: impl AsyncFnOnce(&Maps) -> T,
) -> T {
    let runtime = threads();
    let maps = source.informer(&runtime).unwrap().start().unwrap();
    maps.synced_within(LONG).await.unwrap();
    let done = scenario(&maps).await;
    drop(maps);
    runtime.shutdown(LONG).await.unwrap();
    done
}

async fn saved(maps: &Maps) {
    reached(maps, |status| status.saved.as_ref().is_some_and(|saved| saved.saved_at.is_some())).await;
}

/// Waits until what is published now is in the file: one write may have begun before.
async fn saved_all(place: &Place, maps: &Maps) {
    for value in ["first", "second"] {
        place.server.update(map("touched", value)).unwrap();
        published(maps, place.server.revision()).await;
        let before = maps.runtime().now();
        let is_newer = |status: &InformerStatus| {
            status.saved.as_ref().is_some_and(|saved| saved.saved_at > Some(before))
        };
        reached(maps, is_newer).await;
    }
}

fn value(maps: &Maps, name: &str) -> Option<String> {
    let key = ObjectKey::namespaced("default", name);
    Some(maps.snapshot().get(&key)?.decoded().unwrap().data.as_ref()?["k"].clone())
}

fn problem(maps: &Maps) -> Option<String> {
    maps.status().saved.and_then(|saved| saved.problem).map(|why| why.to_string())
}

async fn write_once(place: &Place) {
    run(place.source(), async |maps| saved(maps).await).await;
}

#[tokio::test]
async fn after_a_restart_the_objects_are_there_without_a_list_and_what_changed_meanwhile_comes_by_the_watch()
{
    let place = Place::new().await;
    write_once(&place).await;
    let lists = place.lists();
    assert_eq!(lists, 1);
    place.server.update(map("changed", "2")).unwrap();
    place.server.delete("configmaps", "default", "deleted").unwrap();
    place.server.create(map("created", "1")).unwrap();

    run(place.source(), async |maps| {
        assert!(maps.status().saved.unwrap().began_with.is_some());
        published(maps, place.server.revision()).await;
        let status =
            reached(maps, |status| status.saved.as_ref().is_some_and(|saved| saved.catching_up_to.is_none()))
                .await;
        assert_eq!(status.stale(maps.runtime().now()), None);
        let values = ["kept", "changed", "deleted", "created"].map(|name| value(maps, name));
        assert_eq!(values, [Some("1".into()), Some("2".into()), None, Some("1".into())]);
        assert_eq!(place.lists(), lists, "nothing was listed");
        assert_eq!(problem(maps), None);
        saved_all(&place, maps).await;
    })
    .await;

    // The changes are in the file, too.
    place.server.clear_requests();
    run(place.source(), async |maps| {
        assert_eq!((value(maps, "changed"), value(maps, "deleted")), (Some("2".into()), None));
    })
    .await;
    assert_eq!(place.lists(), 0);
}

#[tokio::test]
async fn a_file_of_other_selectors_or_other_cut_fields_is_written_anew() {
    let place = Place::new().await;
    // One field, whose name has a dot: that is not there, so nothing is cut.
    let dotted = Prune::nothing().cut(["metadata.managedFields"]);
    for other in [
        place.source().labels("app=web"),
        place.source().prune(Prune::nothing()),
        place.source().prune(dotted),
    ] {
        write_once(&place).await;
        run(other, async |maps| {
            assert_eq!((maps.status().saved.unwrap().began_with, problem(maps)), (None, None));
            saved(maps).await;
        })
        .await;
        let lists = place.lists();
        run(place.source(), async |maps| {
            assert_eq!((maps.status().saved.unwrap().began_with, maps.snapshot().len()), (None, 4));
        })
        .await;
        assert_eq!(place.lists(), lists + 1);
    }
}

#[cfg(feature = "protobuf")]
#[tokio::test]
async fn a_file_of_the_other_wire_is_written_anew_and_one_of_protobuf_is_begun_with() {
    use actix_informer::representation::WireKind;

    let is_protobuf = |maps: &Maps| {
        let is_message = |map: &Object<LazyBody<ConfigMap>>| {
            map.read(|object| matches!(object.wire(), WireKind::Protobuf(_)))
        };
        maps.snapshot().iter().all(is_message)
    };
    let place = Place::new().await;
    write_once(&place).await;
    run(place.source().protobuf(), async |maps| {
        assert_eq!((maps.status().saved.unwrap().began_with, problem(maps)), (None, None));
        assert!(is_protobuf(maps));
        saved(maps).await;
    })
    .await;
    let lists = place.lists();
    run(place.source().protobuf(), async |maps| {
        assert!(maps.status().saved.unwrap().began_with.is_some() && is_protobuf(maps));
        assert_eq!(value(maps, "kept").as_deref(), Some("1"));
    })
    .await;
    assert_eq!(place.lists(), lists);
    run(place.source(), async |maps| {
        assert_eq!((maps.status().saved.unwrap().began_with, is_protobuf(maps)), (None, false));
    })
    .await;
    assert_eq!(place.lists(), lists + 1);
}

#[tokio::test]
async fn without_the_right_to_read_kube_system_nothing_is_saved_and_that_is_said() {
    let jane = User::new("jane");
    let server = ApiServer::builder().user_token("jane", jane).rbac().start().await.unwrap();
    server.create(map("one", "1")).unwrap();
    for rights in [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "maps", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "maps", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
        }),
    ] {
        server.create(rights).unwrap();
    }
    let kubeconfig = server.kubeconfig_for(&Credential::Token("jane".into()));
    let client = Client::new(Config::from_kubeconfig_text(&kubeconfig, None).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("maps.redb");
    let source = client.resource::<ConfigMap>().namespace("default").packed().persist(&file);
    run(source, async |maps| {
        assert_eq!(maps.snapshot().len(), 1);
        let why = problem(maps).expect("it is said");
        assert!(why.contains("kube-system"), "{why}");
    })
    .await;
    assert!(!file.exists());
}

#[tokio::test]
async fn one_informer_has_a_file_at_a_time_and_another_one_takes_it_over() {
    let place = Place::new().await;
    let (first, other) = (threads(), threads());
    let maps = place.source().informer(&first).unwrap().start().unwrap();
    maps.synced_within(LONG).await.unwrap();
    saved(&maps).await;
    let others = place.source().informer(&other).unwrap().start().unwrap();
    others.synced_within(LONG).await.unwrap();
    assert_eq!(others.snapshot().len(), 4);
    assert!(problem(&others).is_some());
    assert_eq!(problem(&maps), None);
    drop(maps);
    first.shutdown(LONG).await.unwrap();
    saved(&others).await;
    assert_eq!(problem(&others), None);
}

#[tokio::test]
async fn secrets_are_saved_only_when_that_is_said_and_several_namespaces_never() {
    let place = Place::new().await;
    let (client, runtime) = (client_of(&place.server), threads());
    let refused = |error: Option<Error>| match error {
        Some(Error::Unsupported(what)) => what,
        other => panic!("{other:?}"),
    };
    let secrets = client.resource::<Secret>().packed();
    let why = refused(secrets.clone().persist(place.file()).informer(&runtime).err());
    assert!(why.contains("persist_secrets"), "{why}");
    let maps = client.resource::<ConfigMap>();
    let several = maps.clone().namespaces(["a", "b"]).packed().persist(place.file());
    assert!(refused(several.informer(&runtime).err()).contains("several"));
    let selected = maps.namespaces_with_labels("a=b").packed().persist(place.file());
    assert!(refused(selected.informer(&runtime).err()).contains("several"));
    let among_others = client.resource::<ConfigMap>().packed().persist(place.file()).source(&runtime);
    assert!(refused(among_others.err()).contains("among others"));
    assert!(!Path::new(&place.file()).exists(), "nothing was written");

    let secrets = secrets.persist_secrets(place.file()).informer(&runtime).unwrap().start().unwrap();
    secrets.synced_within(LONG).await.unwrap();
    reached(&secrets, |status| status.saved.as_ref().is_some_and(|saved| saved.saved_at.is_some())).await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner reads it");
    }
}
