// The delegation page: choosing a row, opening a branch, turning pages and searching happen
// in place. Every one of them is a link or a form of its own address, so that Back undoes it
// and the page works without this.
(function () {
  'use strict';
  function part() { return document.getElementById('delegation'); }
  if (!part() || !window.fetch || !window.htmx) return;
  var asked = 0;

  // ---- going to an address of the same page without leaving it
  function go(address, how) {
    var mine = ++asked, here = part(), to = new URL(address, location.href);
    here.classList.add('is-busy');
    fetch(to, { credentials: 'same-origin', headers: { Accept: 'text/html' } }).then(function (res) {
      if (!res.ok || new URL(res.url).pathname === '/login') throw new Error('not this page');
      return res.text();
    }).then(function (html) {
      if (mine !== asked) return;
      var next = new DOMParser().parseFromString(html, 'text/html').getElementById('delegation');
      if (!next || !part()) throw new Error('not this page');
      if (how !== 'back') history.pushState({ trace: true }, '', to);
      swap(next, how);
    }).catch(function () {
      if (mine === asked) location.href = to; // the plain way shows what is wrong
    });
  }
  function swap(next, how) {
    var here = part(), top = window.scrollY;
    window.ghMorph(here, next);
    here.classList.remove('is-busy');
    window.htmx.process(here); // its address is another one now
    document.dispatchEvent(new CustomEvent('gh-morphed', { detail: { part: here } }));
    if (how === 'row' && matchMedia('(max-width: 640px)').matches) {
      var pane = document.getElementById('pane') || document.getElementById('talk') || document.getElementById('result');
      if (pane) { pane.scrollIntoView(); return; }
    }
    if (how !== 'fold') inSight(how === 'rows');
    if (how === 'rows') {
      var tree = document.getElementById('tree');
      if (tree.getBoundingClientRect().top < 0) tree.scrollIntoView();
      return;
    }
    window.scrollTo(0, top);
  }
  // In a long tree the rows scroll in a box of their own: the selected one is in its sight.
  function inSight(atTop) {
    var box = document.querySelector('#tree [data-rows].is-long'), row = document.querySelector('#tree .is-selected');
    if (!box || box.scrollHeight <= box.clientHeight) return;
    if (atTop) { box.scrollTop = 0; return; }
    if (!row) return;
    var b = box.getBoundingClientRect(), r = row.getBoundingClientRect();
    if (r.top < b.top + 36 || r.bottom > b.bottom) box.scrollTop += r.top - b.top - b.height / 3;
  }
  function plain(e) { return e.button === 0 && !e.ctrlKey && !e.metaKey && !e.shiftKey && !e.altKey; }
  document.addEventListener('click', function (e) {
    var a = e.target.closest && e.target.closest('#delegation a[data-trace]');
    if (!a || !plain(e) || e.defaultPrevented) return;
    e.preventDefault();
    // A link in a drawing has an address of another kind.
    go(typeof a.href === 'string' ? a.href : a.href.baseVal, a.getAttribute('data-trace'));
  });
  document.addEventListener('submit', function (e) {
    if (!e.target.matches('#delegation .tree-tools, #delegation .event-filter')) return;
    e.preventDefault();
    var to = new URL(e.target.action, location.href);
    new FormData(e.target).forEach(function (v, k) { if (v) to.searchParams.set(k, v); });
    go(to, 'find');
  });
  window.addEventListener('popstate', function () {
    if (part()) go(location.href, 'back');
  });

  // ---- keys: left and right close and open the branch of the row that has the focus
  document.addEventListener('keydown', function (e) {
    if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight' || e.ctrlKey || e.metaKey || e.altKey) return;
    var row = e.target.closest && e.target.closest('#tree [data-row]');
    var fold = row && !e.target.matches('input') && row.querySelector('.fold');
    if (!fold || (fold.getAttribute('aria-expanded') === 'true') !== (e.key === 'ArrowLeft')) return;
    e.preventDefault();
    fold.click();
  });

  // ---- an event's link works when the event is on another page, too
  function toEvent() {
    var m = /^#e-(\d+)$/.exec(location.hash);
    if (!m) return;
    var li = document.getElementById('e-' + m[1]);
    if (li) {
      li.querySelector('details').open = true;
      li.scrollIntoView({ block: 'center' });
      return;
    }
    var to = new URL(location.href);
    if (to.searchParams.get('at') === m[1]) return; // it was asked for, and is not there
    to.search = '';
    to.searchParams.set('tab', 'events');
    to.searchParams.set('at', m[1]);
    location.replace(to);
  }
  window.addEventListener('hashchange', toEvent);
  document.addEventListener('click', function (e) {
    var b = e.target.closest && e.target.closest('[data-copy-link]');
    if (!b || !navigator.clipboard) return;
    navigator.clipboard.writeText(new URL(b.getAttribute('data-copy-link'), location.href).href).then(function () {
      b.textContent = 'Copied';
      setTimeout(function () { b.textContent = 'Copy link'; }, 1500);
    }, function () { /* the browser refused: nothing was copied, nothing is said */ });
  });
  toEvent();
  inSight(false);
})();
