//! Informers whose every connection passes a proxy: HTTP, HTTPS and SOCKS5, with a login.
//!
//! Answers "is an informer behind a proxy as true as one without, also when the tunnels break?"

use crate::followed::Followed;
use crate::small_proxy::{KINDS, Settings, SmallProxy};
use crate::stage::{LONG, Pod, Stage, until};

pub(crate) async fn rest_42_an_informer_follows_through_each_kind_of_proxy_and_through_broken_tunnels(
    stage: Stage,
) {
    stage.api.create_many(&stage.namespace, 25).await;
    // The in-memory server over plain http first, and then behind HTTPS: TLS in the TLS of an https proxy.
    follow_through_proxies(&stage, "plain").await;
    let stage = stage.secured().await;
    stage.api.create(&stage.namespace, "secured").await;
    follow_through_proxies(&stage, "secure").await;
}

async fn follow_through_proxies(stage: &Stage, round: &str) {
    for kind in KINDS {
        let settings = Settings { login: Some(("informer", "p:/@")), ..Settings::default() };
        let proxy = SmallProxy::start_with(kind, settings);
        let url = proxy.url_of("informer:p%3A%2F%40");
        let client = stage.server.client_through_proxy(&url, proxy.certificate());
        let source = client.resource::<Pod>().namespace(&*stage.namespace);
        let name = format!("{round}-{kind:?}").to_lowercase();
        let pods = Followed::start(stage.described(&name, source), &[&stage.namespace]);
        pods.informer.synced_within(LONG).await.expect("it syncs through the proxy");
        pods.streams().await;
        stage.api.create(&stage.namespace, &format!("{name}-live")).await;
        pods.agrees(&stage.api).await;

        let before = proxy.asked().len();
        assert!(
            before >= 1 && proxy.asked().iter().all(|asked| *asked == stage.server.address().to_string())
        );
        proxy.break_tunnels();
        stage.api.create(&stage.namespace, &format!("{name}-later")).await;
        pods.agrees(&stage.api).await;
        until("a new tunnel was made", || proxy.asked().len() > before).await;
        let _ = pods.informer.shutdown(LONG).await;
    }
}
