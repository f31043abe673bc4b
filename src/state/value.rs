//! What a keyed operator holds of one key while it looks at a record. It knows no table: who lent it sees afterwards
//! whether it has changed.

/// The state of one key: none until something is set, and none again when it is taken. What is only looked at is not
/// written again.
#[derive(Debug)]
pub struct Value<V> {
    value: Option<V>,
    changed: bool,
}

impl<V> Value<V> {
    pub(super) fn new(value: Option<V>) -> Self {
        Self { value, changed: false }
    }

    /// What is there.
    #[inline]
    pub fn get(&self) -> Option<&V> {
        self.value.as_ref()
    }

    /// What is there, to be changed: it is written again, changed or not.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut V> {
        self.changed = true;
        self.value.as_mut()
    }

    /// What is there, to be changed; first made by `init` if there is nothing.
    #[inline]
    pub fn get_or_insert_with(&mut self, init: impl FnOnce() -> V) -> &mut V {
        self.changed = true;
        self.value.get_or_insert_with(init)
    }

    /// Sets it.
    #[inline]
    pub fn set(&mut self, value: V) {
        self.changed = true;
        self.value = Some(value);
    }

    /// Takes it out: the key is gone, and so is the room that it took.
    #[inline]
    pub fn take(&mut self) -> Option<V> {
        self.changed = true;
        self.value.take()
    }

    /// Whether there is nothing.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.value.is_none()
    }

    /// Takes the value out for somebody who [gives it back](Value::give_back): so far nothing has changed.
    #[inline]
    pub(crate) fn lend(&mut self) -> Option<V> {
        self.value.take()
    }

    /// What has become of the value that was lent.
    #[inline]
    pub(crate) fn give_back(&mut self, value: Option<V>, is_changed: bool) {
        (self.value, self.changed) = (value, is_changed);
    }

    /// The value in the end, and whether it has been touched.
    #[inline]
    pub(super) fn into_parts(self) -> (Option<V>, bool) {
        (self.value, self.changed)
    }
}
