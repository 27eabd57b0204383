package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/record/retention"
)

func TestAgesOfRetention(t *testing.T) {
	for text, want := range map[string]retention.Rules{
		"":                                    {Deliveries: keepDeliveries},
		"retention: {}":                       {Deliveries: keepDeliveries},
		"retention: {data: 400d, blobs: 90d}": {Data: 400 * 24 * time.Hour, Blobs: 90 * 24 * time.Hour, Deliveries: keepDeliveries},
		"retention: {data: never, deliveries: never}": {},
		"retention: {deliveries: 1h}":                 {Deliveries: time.Hour},
	} {
		c, err := Parse("gatehouse.yaml", []byte(text), os.LookupEnv)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if c.Engine.Retention != want {
			t.Errorf("%s: %+v", text, c.Engine.Retention)
		}
	}
	for text, says := range map[string]string{"data: 400": "such as 400d", "blobs: 10m": "too short", "deliveries: -1d": "such as 400d", "dat: 1d": "data", "data: forever": "never"} {
		_, err := Parse("gatehouse.yaml", []byte("retention:\n  "+text+"\n"), os.LookupEnv)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "gatehouse.yaml:2:") {
			t.Errorf("%s: %v lacks %q", text, err, says)
		}
	}
}
