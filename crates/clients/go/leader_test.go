// Leader election on a Lease: one leads, and another when it has gone.

package clients

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// terms of leadership, in the order in which they began; two at once are a failure.
type terms struct {
	mutex   sync.Mutex
	began   []string
	leading int
	overlap bool
}

func (o *terms) begin(name string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.began = append(o.began, name)
	o.leading++
	o.overlap = o.overlap || o.leading > 1
}

func (o *terms) end() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.leading--
}

func (o *terms) are(names ...string) (bool, string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Equal(o.began, names), fmt.Sprint(o.began)
}

// candidate runs until it is stopped; `stop` is for one that leads, and returns once it has given up.
type candidate struct {
	stop func()
}

// brief is soon over when its holder has gone without a word, and also when the machine stands still for so long; who leads for more
// than a moment holds a lasting one, and gives it back.
const brief, lasting = 4 * time.Second, 20 * time.Second

func (c *clients) candidate(name string, terms *terms, lease time.Duration) candidate {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: c.namespace},
		Client:     c.typed.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   lease,
		RenewDeadline:   lease * 3 / 4,
		RetryPeriod:     100 * time.Millisecond,
		ReleaseOnCancel: lease == lasting,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				terms.begin(name)
				<-ctx.Done()
			},
			// It is called for one that never led, too.
			OnStoppedLeading: func() {},
		},
	})
	must(c.T, err)
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		elector.Run(ctx)
	}()
	return candidate{stop: func() {
		terms.end()
		cancel()
		<-done
	}}
}

func TestLeaderElection(t *testing.T) {
	c := start(t, "leaders")
	terms := &terms{}
	leads := func(names ...string) {
		t.Helper()
		c.until("a term begins", func() (bool, string) { return terms.are(names...) })
	}
	first := c.candidate("first", terms, lasting)
	leads("first")
	second := c.candidate("second", terms, brief)
	third := c.candidate("third", terms, brief)
	lease := func() string {
		lease, err := c.typed.CoordinationV1().Leases(c.namespace).Get(c.ctx, "leader", metav1.GetOptions{})
		must(t, err)
		return fmt.Sprint(*lease.Spec.HolderIdentity, " ", *lease.Spec.LeaseTransitions)
	}
	renewed := func() time.Time {
		lease, err := c.typed.CoordinationV1().Leases(c.namespace).Get(c.ctx, "leader", metav1.GetOptions{})
		must(t, err)
		return lease.Spec.RenewTime.Time
	}
	if held := lease(); held != "first 0" {
		t.Fatalf("held by %s", held)
	}
	before := renewed()
	c.until("the holder renews", func() (bool, string) { return renewed().After(before), before.String() })

	// Whoever is second, the last one is the other.
	first.stop()
	c.until("another leads", func() (bool, string) {
		terms.mutex.Lock()
		defer terms.mutex.Unlock()
		return len(terms.began) == 2, fmt.Sprint(terms.began)
	})
	next, last, remaining := second, third, "third"
	if is, _ := terms.are("first", "third"); is {
		next, last, remaining = third, second, "second"
	}
	// This one goes without a word: the last waits until its lease is over.
	next.stop()
	c.until("the last leads", func() (bool, string) {
		terms.mutex.Lock()
		defer terms.mutex.Unlock()
		return len(terms.began) == 3 && terms.began[2] == remaining, fmt.Sprint(terms.began)
	})
	last.stop()
	if terms.overlap {
		t.Fatalf("two led at once: %v", terms.began)
	}
	if held := lease(); held[:len(remaining)] != remaining {
		t.Fatalf("held by %s", held)
	}
}
