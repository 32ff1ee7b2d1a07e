package kube

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

func TestReporter(t *testing.T) {
	var got []string
	r := &reporter{log: funcr.New(func(prefix, args string) { got = append(got, prefix+" "+args) }, funcr.Options{Verbosity: 1})}
	oops := errors.New("oops")
	say := func() {
		log := r.logger().WithName("a").WithName("b").WithValues("rack", "r1")
		log.Info("not said")
		log.Error(oops, "said", "slot", 3)
		log.Error(nil, "bare")
		etcd := etcdLog(r).With(zap.String("member", "m1"))
		etcd.Warn("not said")
		etcd.Error("said", zap.Error(oops), zap.Int("term", 2))
	}

	say()
	r.ready.Store(true)
	say()
	want := []string{
		`a/b "level"=1 "msg"="said" "error"="oops" "rack"="r1" "slot"=3`,
		`a/b "level"=1 "msg"="bare" "rack"="r1"`,
		`etcd "level"=1 "msg"="said" "error"="oops" "member"="m1" "term"=2`,
		`a/b "msg"="said" "error"="oops" "rack"="r1" "slot"=3`,
		`a/b "msg"="bare" "error"=null "rack"="r1"`,
		`etcd "msg"="said" "error"="oops" "member"="m1" "term"=2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log before and after ready (-want +got):\n%s", diff)
	}
}
