//! A serializer that writes nothing: it follows a path and gives the texts at its end.
//!
//! Answers "what is at this path?" by the calls that a body's `Serialize` makes. Where a call is of another kind than the
//! path's next step there is nothing, and a member or an element that is not on the path is not serialized. Texts,
//! numbers and booleans at the end are given as serde_json would write them, without quotes. Invariants:
//! 1. Options and newtypes are no step, as in JSON. An enum's variant with content is an object with one member.
//! 2. A key of a map is any value that serde_json takes for one.
//!
//! Read next: `field_values.rs`, the only user.

use std::fmt::Display;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Number};

use crate::wire::PathStep;

/// Receives each text.
type Give<'g> = &'g mut dyn FnMut(&str);

/// A value, and what is left of the path there.
pub(super) struct Walk<'p, 'g> {
    path: &'p [PathStep],
    give: Give<'g>,
}

/// An object or an array.
pub(super) struct Inside<'p, 'g> {
    /// The path's next step, and what is left of it behind that.
    next: Option<(&'p PathStep, &'p [PathStep])>,
    give: Give<'g>,
    /// Whether the key that came last is on the path.
    is_on_path: bool,
}

impl<'p, 'g> Walk<'p, 'g> {
    pub(super) fn new(path: &'p [PathStep], give: Give<'g>) -> Self {
        Self { path, give }
    }

    fn scalar(self, value: impl Display) -> Result<(), Error> {
        if self.path.is_empty() {
            (self.give)(&value.to_string());
        }
        Ok(())
    }

    fn inside(self) -> Inside<'p, 'g> {
        Inside { next: self.path.split_first(), give: self.give, is_on_path: false }
    }

    /// The path in the content of a variant, which is the only member of an object.
    fn path_in(&self, variant: &str) -> Option<&'p [PathStep]> {
        match self.path.split_first() {
            Some((PathStep::Field(wanted), path)) if **wanted == *variant => Some(path),
            _ => None,
        }
    }

    fn inside_variant(self, variant: &str) -> Inside<'p, 'g> {
        let next = self.path_in(variant).and_then(<[PathStep]>::split_first);
        Inside { next, give: self.give, is_on_path: false }
    }
}

impl Inside<'_, '_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        match self.next {
            Some((PathStep::Elements, path)) => value.serialize(Walk { path, give: &mut *self.give }),
            _ => Ok(()),
        }
    }

    fn is_next(&self, key: &str) -> bool {
        matches!(self.next, Some((PathStep::Field(wanted), _)) if **wanted == *key)
    }

    fn member<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        match self.next {
            Some((_, path)) => value.serialize(Walk { path, give: &mut *self.give }),
            None => Ok(()),
        }
    }
}

macro_rules! scalars {
    ($($method:ident($kind:ty);)*) => {$(
        fn $method(self, value: $kind) -> Result<(), Error> {
            self.scalar(value)
        }
    )*};
}

impl<'p, 'g> Serializer for Walk<'p, 'g> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'p, 'g>;
    type SerializeTuple = Inside<'p, 'g>;
    type SerializeTupleStruct = Inside<'p, 'g>;
    type SerializeTupleVariant = Inside<'p, 'g>;
    type SerializeMap = Inside<'p, 'g>;
    type SerializeStruct = Inside<'p, 'g>;
    type SerializeStructVariant = Inside<'p, 'g>;

    scalars! {
        serialize_bool(bool); serialize_i8(i8); serialize_i16(i16); serialize_i32(i32); serialize_i64(i64);
        serialize_i128(i128); serialize_u8(u8); serialize_u16(u16); serialize_u32(u32); serialize_u64(u64);
        serialize_u128(u128); serialize_char(char);
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        // What is no number in JSON is null.
        Number::from_f64(value).map_or(Ok(()), |number| self.scalar(number))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.path.is_empty() {
            (self.give)(value);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        let mut inside = self.inside();
        value.iter().try_for_each(|byte| inside.element(byte))
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let path = self.path_in(variant);
        path.map_or(Ok(()), |path| value.serialize(Walk { path, give: self.give }))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside())
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside_variant(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'p, 'g>, Error> {
        Ok(self.inside_variant(variant))
    }
}

macro_rules! elements {
    ($($kind:ident::$method:ident),*) => {$(
        impl $kind for Inside<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )*};
}

elements! {
    SerializeSeq::serialize_element, SerializeTuple::serialize_element, SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
}

macro_rules! fields {
    ($($kind:ident),*) => {$(
        impl $kind for Inside<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                if self.is_next(key) { self.member(value) } else { Ok(()) }
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )*};
}

fields! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for Inside<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let (mut is_on_path, inside) = (false, &*self);
        key.serialize(Walk { path: &[], give: &mut |text| is_on_path = inside.is_next(text) })?;
        self.is_on_path = is_on_path;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if self.is_on_path { self.member(value) } else { Ok(()) }
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}
