//! Texts of which a key can be made.
//!
//! Answers "which types are accepted as the name of an object?" `Into<Arc<str>>` would refuse `&String`, and `AsRef<str>`
//! would copy a text that is shared already. Read next: `key.rs`.

use std::borrow::Cow;
use std::sync::Arc;

/// A namespace or a name for an [`ObjectKey`](super::ObjectKey): `&str`, `String`, `&String`, or a text that is shared
/// already (`Arc<str>`, `&Arc<str>`) and is then not copied.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::ObjectKey;
///
/// let (namespace, name) = ("shop".to_owned(), "web".to_owned());
/// assert_eq!(ObjectKey::namespaced(&namespace, &name), ObjectKey::namespaced("shop", name));
/// ```
pub trait KeyText {
    /// The text, in the form that a key keeps.
    fn into_shared(self) -> Arc<str>;
}

impl KeyText for Arc<str> {
    fn into_shared(self) -> Self {
        self
    }
}

impl KeyText for &Arc<str> {
    fn into_shared(self) -> Arc<str> {
        Arc::clone(self)
    }
}

macro_rules! copied {
    ($($text:ty),*) => {$(
        impl KeyText for $text {
            fn into_shared(self) -> Arc<str> {
                let text: &str = &self;
                text.into()
            }
        }
    )*};
}

copied!(&str, &&str, String, &String, Box<str>, Cow<'_, str>);

#[cfg(test)]
mod tests {
    use super::KeyText;
    use crate::meta::ObjectKey;
    use std::borrow::Cow;
    use std::sync::Arc;

    #[test]
    fn newcomer_0_a_key_is_made_of_any_kind_of_text() {
        let (shop, owned) = ("shop".to_owned(), "web".to_owned());
        let key = ObjectKey::namespaced("shop", "web");
        assert_eq!(ObjectKey::namespaced(&shop, &owned), key);
        assert_eq!(ObjectKey::namespaced(shop.clone(), Cow::Borrowed("web")), key);
        assert_eq!(ObjectKey::namespaced("shop", owned.clone().into_boxed_str()), key);
        assert_eq!(ObjectKey::cluster(&owned), ObjectKey::cluster("web"));
        assert_eq!(key.sibling(&owned), key.sibling(owned));
        assert_eq!(ObjectKey::namespaced(&shop, "web"), key);
    }

    #[test]
    fn a_text_that_is_shared_already_is_not_copied() {
        let shared: Arc<str> = "web".into();
        for key in [ObjectKey::cluster(&shared), ObjectKey::cluster(Arc::clone(&shared))] {
            assert!(Arc::ptr_eq(key.shared_name(), &shared));
        }
        assert!(Arc::ptr_eq(&(&shared).into_shared(), &shared));
    }
}
