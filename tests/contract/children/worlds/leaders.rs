//! Two replicas of two builds, of which one leads: what the other one has added while it led is removed when this one is back.

use super::*;

/// One build makes its children with an annotation, the other one without.
async fn replica(host: Host) -> Result<(), Failed> {
    let (client, runtime) = (host.client(), host.runtime());
    let election =
        LeaderElection::builder(client, runtime, LeaseName { namespace: "default", name: "sites" })
            .identity(host.name());
    let election = election.start()?;
    let leading = election.guard(client);
    let sites = client.resource::<Site>().informer(runtime)?.start()?;
    let maps = client.resource::<ConfigMap>().informer(runtime)?.start()?;
    let children = Children::new(&leading, "sites").cached(&maps.lister());
    let is_new_build = host.name() == "new";
    let reconcile = move |request: Request<Site>| {
        let children = children.clone();
        async move {
            let site = request.object().filter(|site| site.metadata.deletion_timestamp.is_none());
            let Some(site) = site else { return Ok::<_, ReconcileError>(Outcome::Done) };
            let mut pass = children.of(&request, site)?;
            for wish in wanted(&site.spec.pages, "sites") {
                let mut child = page(&child_name(site.key().name(), "sites", wish), "text");
                if is_new_build {
                    child.metadata.annotations = Some([("build".to_owned(), "new".to_owned())].into());
                }
                pass.apply(child).await?;
            }
            pass.prune().await?;
            Ok(Outcome::Done)
        }
    };
    // A controller for each term, as an operator has them; all of them share the children.
    let terms = async {
        while let Ok(term) = election.acquired().await {
            let Some(work) = term.begin_work() else { continue };
            let fence = term.fence();
            let controller = Controller::builder(&sites).owns(&maps).every(20 * SECOND);
            let controller =
                controller.fenced_by(move || Some(fence)).reconcile(reconcile.clone()).start()?;
            term.ended().await;
            controller.shut_down();
            controller.ended().await;
            drop(work);
        }
        Ok::<_, Failed>(())
    };
    let stopping = async {
        host.stopping().await;
        election.shutdown(5 * SECOND).await
    };
    let (ran, stopped) = futures_util::join!(terms, stopping);
    stopped?;
    ran
}

fn leader(world: &World) -> String {
    let lease = world.server().get("leases.coordination.k8s.io", "default", "sites").unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Whether each child is as the build of the leader makes it.
fn is_of_leader(world: &World) -> Result<(), String> {
    is_right(world, &["sites"])?;
    let leader = leader(world);
    let expected = if leader == "new" { json!("new") } else { Value::Null };
    let all = world.server().list(MAPS).expect("they are served");
    let is_child = |map: &&Value| map["data"]["text"] == "text";
    let wrong = all.iter().filter(is_child).find(|map| map["metadata"]["annotations"]["build"] != expected);
    wrong.map_or(Ok(()), |map| Err(format!("{leader:?} leads: {map}")))
}

fn run(seed: u64) {
    World::simulated(seed).run(|world| async move {
        let users = Users::new(&world, &["sites"]);
        let replicas = [world.start("new", replica), world.start("old", replica)];
        let act = async {
            // Each leads in turn, several times.
            for _ in 0..4 {
                users.pause(10 * SECOND).await;
                users.change(users.below(OWNERS));
                let leads = leader(&world);
                let Some(frozen) = replicas.iter().find(|replica| replica.name() == leads) else { continue };
                frozen.freeze();
                tokio::time::sleep(30 * SECOND).await;
                frozen.thaw();
                users.pause(30 * SECOND).await;
            }
        };
        futures_util::join!(act, world.disturb(4, 2 * TROUBLED));
        world.eventually(1_200 * SECOND, || is_of_leader(&world)).await;
        is_of_leader(&world).expect("what has settled stays");
    });
}

#[test]
fn operator_worlds_a_former_leader_that_comes_back_removes_what_the_one_between_has_added() {
    each_seed(SEEDS, run);
}
