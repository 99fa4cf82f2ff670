//! A bounded log ordered by revision, and its cursors.
