//! Definition of a part of the memory system: private fields, each either saved in snapshots or kept.

/// Defines a part. Each field is in one of two groups, so that a new field does not compile until it is decided what
/// becomes of it: `saved` goes into snapshots and is put back from them; `kept` stays as it was built from the
/// configuration, is used within a step only, or belongs to an observer of this machine.
macro_rules! part {
    ($(#[$doc:meta])* $vis:vis struct $Part:ident $(<$Any:ident: ?Sized>)? saved as $Saved:ident {
        saved { $($(#[$saved_doc:meta])* $saved:ident: $saved_type:ty,)* }
        kept { $($(#[$kept_doc:meta])* $kept:ident: $kept_type:ty,)* }
    }) => {
        $(#[$doc])*
        $vis struct $Part $(<$Any: ?Sized>)? {
            $($(#[$saved_doc])* $saved: $saved_type,)*
            $($(#[$kept_doc])* $kept: $kept_type,)*
        }

        /// The state by reference, to be saved.
        #[derive(serde::Serialize)]
        pub(crate) struct Written<'a> {
            $($saved: &'a $saved_type,)*
        }

        /// The state as it was saved: the same fields in the same order.
        #[derive(serde::Deserialize)]
        pub(crate) struct $Saved {
            $($saved: $saved_type,)*
        }

        impl $(<$Any: ?Sized>)? $Part $(<$Any>)? {
            /// All that changes while the system works.
            pub(crate) fn state(&self) -> Written<'_> {
                Written { $($saved: &self.$saved,)* }
            }

            /// Puts a saved state into this part, which was built for the same plan.
            pub(crate) fn put_state(&mut self, saved: $Saved) {
                $(self.$saved = saved.$saved;)*
            }
        }
    };
}
pub(crate) use part;
