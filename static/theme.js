// Runs before the first paint, so that a remembered theme does not flash.
(function () {
  'use strict';
  var root = document.documentElement;
  root.classList.add('js');
  try {
    ['theme', 'density', 'wrap', 'space'].forEach(function (name) {
      var value = localStorage.getItem('gatehouse.' + name);
      if (value) root.setAttribute('data-' + name, value);
    });
  } catch (e) { /* storage may be switched off */ }
  // Days of filters are the reader's own: the server has to know where midnight is.
  try {
    var zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone && document.cookie.indexOf('gatehouse_zone=' + zone) < 0) document.cookie = 'gatehouse_zone=' + zone + '; path=/; max-age=31536000; samesite=lax';
  } catch (e) { /* cookies may be switched off */ }
})();
