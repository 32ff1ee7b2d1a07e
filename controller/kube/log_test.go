package kube

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

func TestReporterLogsErrorsAsDetailsUntilReady(t *testing.T) {
	var got []string
	r := &reporter{log: funcr.New(func(prefix, args string) { got = append(got, prefix+" "+args) }, funcr.Options{Verbosity: 1})}
	oops := errors.New("oops")
	logAll := func() {
		log := r.logger().WithName("a").WithName("b").WithValues("rack", "r1")
		log.Info("dropped")
		log.Error(oops, "logged", "slot", 3)
		log.Error(nil, "bare")
		etcd := etcdLog(r).With(zap.String("member", "m1"))
		etcd.Warn("dropped")
		etcd.Error("logged", zap.Error(oops), zap.Int("term", 2))
	}

	logAll()
	r.ready.Store(true)
	logAll()
	want := []string{
		`a/b "level"=1 "msg"="logged" "error"="oops" "rack"="r1" "slot"=3`,
		`a/b "level"=1 "msg"="bare" "rack"="r1"`,
		`etcd "level"=1 "msg"="logged" "error"="oops" "member"="m1" "term"=2`,
		`a/b "msg"="logged" "error"="oops" "rack"="r1" "slot"=3`,
		`a/b "msg"="bare" "error"=null "rack"="r1"`,
		`etcd "msg"="logged" "error"="oops" "member"="m1" "term"=2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log before and after ready (-want +got):\n%s", diff)
	}
}
