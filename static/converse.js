// The Conversation tab while the agent is at work: what the model writes shows at the end
// while it comes, over a WebSocket of this page that is open only while it is looked at.
// The stored turns come with the page's live parts, as everywhere.
(function () {
  'use strict';
  if (!window.WebSocket || !window.ghParts) return;
  var WAITS = [500, 1000, 2000, 4000, 8000, 15000];
  var ws = null, tries = 0, timer = null, message = null, of = '', waiting = false;
  function place() { return document.getElementById('live-turn'); }

  // ---- the end is followed until the reader scrolls up
  function scroller() { return document.scrollingElement; }
  function atEnd() { var s = scroller(); return s.scrollHeight - s.scrollTop - window.innerHeight < 48; }
  function chip() { return document.getElementById('talk-new'); }
  var stick = !!place() && !location.hash, height = 0;
  function toEnd() { scroller().scrollTop = scroller().scrollHeight; if (chip()) chip().hidden = true; }
  function grown() {
    if (!document.getElementById('talk')) return;
    var now = scroller().scrollHeight;
    if (stick) toEnd();
    else if (now > height + 8 && place() && chip()) chip().hidden = atEnd();
    height = scroller().scrollHeight;
  }
  window.addEventListener('scroll', function () {
    if (!place()) return;
    stick = atEnd();
    if (stick && chip()) chip().hidden = true;
  }, { passive: true });
  document.addEventListener('click', function (e) {
    if (e.target.id === 'talk-new') { stick = true; toEnd(); }
  });

  // ---- what is being written
  function draw() {
    waiting = false;
    var at = place();
    if (!at || !message) return;
    var stored = Number(at.dataset.liveTurn);
    if (stored < message.over) message = new window.ghParts.Message(); // a new run counts from 1
    message.done(stored);
    message.draw(at);
    grown();
  }
  function soon() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }
  function hear(m) {
    if (m.type !== 'message.delta' || m.delegation_id !== of || !message) return;
    if (message.take(m.data || {})) soon();
  }

  // ---- the connection
  function connect() {
    clearTimeout(timer);
    var at = place();
    if (!at || document.hidden || ws) return;
    if (of !== at.dataset.liveDelegation) { of = at.dataset.liveDelegation; message = new window.ghParts.Message(); }
    var mine = new WebSocket(location.origin.replace(/^http/, 'ws') + '/ws');
    ws = mine;
    mine.onopen = function () {
      tries = 0;
      mine.send(JSON.stringify({ type: 'subscribe', task_id: at.dataset.liveTask, after: Number(at.dataset.liveAfter) }));
    };
    mine.onmessage = function (e) { hear(JSON.parse(e.data)); };
    mine.onclose = function () {
      if (ws !== mine) return;
      ws = null;
      timer = setTimeout(connect, WAITS[Math.min(tries++, WAITS.length - 1)]);
    };
  }
  function leave() { clearTimeout(timer); if (ws) { ws.onclose = null; ws.close(); ws = null; } }
  document.addEventListener('gh-morphed', function () {
    if (!place()) { leave(); return; }
    draw();
    connect();
    grown();
  });
  document.addEventListener('visibilitychange', function () { if (document.hidden) leave(); else connect(); });
  window.addEventListener('pagehide', leave);
  window.addEventListener('pageshow', function (e) { if (e.persisted) connect(); });
  connect();
  if (stick) requestAnimationFrame(toEnd);
  height = scroller().scrollHeight;
})();
