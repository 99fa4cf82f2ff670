//! What each rule says, in the words of kube-apiserver.
